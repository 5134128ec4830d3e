// The words of what was said in an attempt.
export const conversation = {
  title: 'Conversation',
  reused: 'Over a connection that had carried a message before.',
  when: 'When',
  said: 'We said',
  answered: 'The server answered',
  atMs: (ms: number) => `${ms} ms`.replace('-', '−'),
}
