// What messages weigh in an answer, as SQL over `message m`.

/** The texts that an answer holds at most, as the JSON that they become. */
export const maxAnswerBytes = 16 << 20
/** A character takes at most six bytes of JSON: `\u0001`. */
export const maxGrowth = 6
/** Characters of each of the three texts of a message that is cut, so that together they fit whatever they hold. */
export const maxCutLength = Math.floor(maxAnswerBytes / maxGrowth / 3)
/** Texts that are read at once; what is more is read in pieces, or in several stretches. */
export const maxReadBytes = 1 << 19

const sumOfTexts = (weigh: (column: string) => string) =>
  `(${weigh('m.text')}::bigint * case when m.direction = 'inbound' and m.extracted_text is null then 2 else 1 end
  + coalesce(${weigh('m.html')}, 0) + coalesce(${weigh('m.extracted_text')}, 0))`

/** The bytes of its texts that an answer shows: received mail has its new text apart, the same or not. */
export const textBytes = sumOfTexts((column) => `octet_length(${column})`)

/** The same as JSON, for which they are read and written: to be asked for only where it matters. */
export const jsonTextBytes = sumOfTexts((column) => `octet_length(to_json(${column})::text)`)

/** What the rest of it may weigh beside a few hundred bytes: a thousand addresses, attachments or references. */
export const restBytes = `(1000 + octet_length(m.recipients::text) + octet_length(m.attachments::text)
  + octet_length(m.reference_ids::text))`

export const isLong = `(${textBytes} > ${maxReadBytes})`

/** Whether the texts are too much for any answer. */
export const isCut = `case when ${textBytes} * ${maxGrowth} <= ${maxAnswerBytes} then false
  when ${textBytes} > ${maxAnswerBytes} then true else ${jsonTextBytes} > ${maxAnswerBytes} end`
