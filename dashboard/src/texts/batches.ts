// The texts of batches of many calls.
export const batches = {
  ready: '',
  running: 'Leave this page open until it is done.',
  waiting: '',
  waits: (left: string) => `The service asks for a pause. It goes on in ${left}.`,
  held: 'On hold.',
  done: 'Done.',
  cancelled: 'Ended. What was done until then stays.',
  hold: 'Hold',
  goOn: 'Go on',
  cancel: 'End it',
  bring: 'Choose a file',
  drop: 'or drop a CSV or text file here',
  paste: 'Or paste addresses, one a line',
  pastePlaceholder: 'ada@example.com\ngrace@example.net',
  fileTooLarge: (mebibytes: number) => `The file is larger than ${mebibytes} MiB. Split it.`,
  notText: 'This is no text file.',
}
