// How much of messages is read whole, and how much of one is shown, as SQL over `message m`.

/** Bytes of JSON that the texts of one answer may have. */
export const maxAnswerBytes = 16 << 20
/** Bytes of JSON that a byte or a character becomes at most: `\u0001`. */
const growth = 6
/** The largest weight that is read whole: of a page's messages together, or of one message. As JSON it has at most 6 MiB. */
export const maxReadBytes = 1 << 20
/** Characters of each of the three texts of a message that is cut, so that together they fit whatever they hold. */
export const maxCutLength = Math.floor(maxAnswerBytes / growth / 3)

/** Received mail has its new text apart, the same or not. */
const sumOfTexts = (bytesOf: (column: string) => string) =>
  `(${bytesOf('m.text')}::bigint * case when m.direction = 'inbound' and m.extracted_text is null then 2 else 1 end
  + coalesce(${bytesOf('m.html')}, 0) + coalesce(${bytesOf('m.extracted_text')}, 0))`

/** The bytes of a message's texts as JSON. The database reads the texts and writes the JSON to find out. */
export const jsonTextBytes = sumOfTexts((column) => `octet_length(to_json(${column})::text)`)

/** Whether the message weighs more than is read at once: its texts are read in pieces. */
export const isLong = `m.weight_bytes > ${maxReadBytes}`

/** Whether the texts are too much for any answer: only their beginnings are shown. */
export const isCut = `case when m.weight_bytes <= ${maxReadBytes} then false
  when ${sumOfTexts((column) => `octet_length(${column})`)} > ${maxAnswerBytes} then true
  else ${jsonTextBytes} > ${maxAnswerBytes} end`
