// The texts of an attempt's SMTP dialogue.
export const conversation = {
  title: 'Conversation',
  reused: 'Over a connection that had carried a message before.',
  when: 'When',
  said: 'We said',
  answered: 'The server answered',
  atMs: (ms: number) => `${ms} ms`.replace('-', '−'),
}
