// Bounds for reading and showing messages, as SQL over `message m`. A message's weight is its column `weight_bytes`.

/** The largest size of all texts in one answer, in bytes of JSON. */
export const maxAnswerBytes = 16 << 20
/** The most bytes of JSON that one byte or character of a text can become, as in `\u0001`. */
const growth = 6
/**
 * The largest weight of a page's messages together, and of a message whose texts are read whole. As JSON that is up to 6
 * MiB.
 */
export const maxReadBytes = 1 << 20
/** A cut message shows this many characters of each of its three texts. Together they always fit into an answer. */
export const maxCutLength = Math.floor(maxAnswerBytes / growth / 3)

/** Received mail also has an extracted text. If that is null, the text counts twice. */
const sumOfTexts = (bytesOf: (column: string) => string) =>
  `(${bytesOf('m.text')}::bigint * case when m.direction = 'inbound' and m.extracted_text is null then 2 else 1 end
  + coalesce(${bytesOf('m.html')}, 0) + coalesce(${bytesOf('m.extracted_text')}, 0))`

/** The size of a message's texts as JSON, in bytes. To compute it the database reads the texts and writes the JSON. */
export const jsonTextBytes = sumOfTexts((column) => `octet_length(to_json(${column})::text)`)

/** Whether the message exceeds the weight that is read whole, so that its texts are read in pieces. */
export const isLong = `m.weight_bytes > ${maxReadBytes}`

/** Whether the texts are too long for any answer, so that only their beginnings are shown. */
export const isCut = `case when m.weight_bytes <= ${maxReadBytes} then false
  when ${sumOfTexts((column) => `octet_length(${column})`)} > ${maxAnswerBytes} then true
  else ${jsonTextBytes} > ${maxAnswerBytes} end`
