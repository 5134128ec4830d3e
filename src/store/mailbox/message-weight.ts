// Bounds for how much of messages is read whole and how much is shown, as SQL over `message m`.

/** The largest size of all texts in one answer, in bytes of JSON. */
export const maxAnswerBytes = 16 << 20
/** The most bytes of JSON that one byte or character can become: `\u0001`. */
const growth = 6
/** The largest weight that is read whole, of a page's messages together or of one message. As JSON that is up to 6 MiB. */
export const maxReadBytes = 1 << 20
/** Characters of each of the three texts of a cut message, so that together they always fit. */
export const maxCutLength = Math.floor(maxAnswerBytes / growth / 3)

/** Received mail also has an extracted text. If that is null, the text counts twice. */
const sumOfTexts = (bytesOf: (column: string) => string) =>
  `(${bytesOf('m.text')}::bigint * case when m.direction = 'inbound' and m.extracted_text is null then 2 else 1 end
  + coalesce(${bytesOf('m.html')}, 0) + coalesce(${bytesOf('m.extracted_text')}, 0))`

/** The size of a message's texts as JSON, in bytes. To compute it the database reads the texts and writes the JSON. */
export const jsonTextBytes = sumOfTexts((column) => `octet_length(to_json(${column})::text)`)

/** Whether the message weighs more than may be read at once, so that its texts are read in pieces. */
export const isLong = `m.weight_bytes > ${maxReadBytes}`

/** Whether the texts are too long for any answer, so that only their beginnings are shown. */
export const isCut = `case when m.weight_bytes <= ${maxReadBytes} then false
  when ${sumOfTexts((column) => `octet_length(${column})`)} > ${maxAnswerBytes} then true
  else ${jsonTextBytes} > ${maxAnswerBytes} end`
