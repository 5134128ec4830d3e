// The texts of an attempt's SMTP dialogue.
export const conversation = {
  title: 'SMTP conversation',
  reused: 'On a connection that had carried a message before.',
  when: 'Time',
  said: 'Command',
  answered: 'Reply',
  atMs: (ms: number) => `${ms} ms`.replace('-', '−'),
}
