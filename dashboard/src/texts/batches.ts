// The texts of batches of many calls.
export const batches = {
  ready: '',
  running: 'Keep this page open until it is done.',
  waiting: '',
  waits: (left: string) => `Rate limit reached. Continues in ${left}.`,
  held: 'Paused.',
  done: 'Done.',
  cancelled: 'Stopped. Completed entries are kept.',
  hold: 'Pause',
  goOn: 'Resume',
  cancel: 'Stop',
  bring: 'Choose a file',
  drop: 'or drop a CSV or text file here',
  paste: 'Or paste addresses, one per line',
  pastePlaceholder: 'ada@example.com\ngrace@example.net',
  fileTooLarge: (mebibytes: number) => `The file is larger than ${mebibytes} MiB. Split it.`,
  notText: 'This is not a text file. Choose a CSV or text file.',
}
