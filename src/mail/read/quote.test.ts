// Tests the new text of replies: headings of many mail programs, quotes between answers, signatures.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { htmlToText } from './html-text.ts'
import { extractNewText } from './quote.ts'

const headings = [
  'On Tue, 1 Jul 2003 at 10:52, Jane Doe <jane@a.example> wrote:',
  'On Tue, 1 Jul 2003 at 10:52, Jane Doe\n<jane@a.example> wrote:',
  'Le mar. 1 juil. 2003 à 10:52, Jane <jane@a.example> a écrit :',
  'El mar, 1 jul 2003 a las 10:52, Jane (<jane@a.example>) escribió:',
  'Il giorno mar 1 lug 2003 alle ore 10:52 Jane <jane@a.example> ha scritto:',
  'Em ter., 1 de jul. de 2003 às 10:52, Jane <jane@a.example> escreveu:',
  'Am 01.07.2003 um 10:52 schrieb Jane Doe <jane@a.example>:',
  'Am Di., 1. Juli 2003 um 10:52 Uhr schrieb Jane <\njane@a.example>:',
  'Op di 1 jul 2003 om 10:52 schreef Jane <jane@a.example>:',
  'W dniu 1.07.2003 o 10:52, Jane pisze:',
  'Den tis 1 juli 2003 kl 10:52 skrev Jane <jane@a.example>:',
  '在 2003年7月1日，10:52，Jane <jane@a.example> 写道：',
  'Jane Doe <jane@a.example> schrieb:',
  'Jane Doe on 1 Jul 2003 at 10:52 wrote:',
  '-----Original Message-----',
  'From: Jane Doe <jane@a.example>\nSent: Tuesday, July 1, 2003 10:52 AM\nTo: Joe',
  'Von: Jane Doe <jane@a.example>\nGesendet: Dienstag, 1. Juli 2003\nAn: Joe',
]

for (const heading of headings) {
  test(`new text ends at ${JSON.stringify(heading)}`, () => {
    assert.equal(extractNewText(`The answer.\n\n${heading}\n\nthe old text\nmore of it\n`), 'The answer.')
    assert.equal(extractNewText(`The answer.\r\n\r\n${heading}\r\n> the old text\r\n`), 'The answer.')
  })
}

const texts: [name: string, text: string, extracted: string][] = [
  [
    'nothing quoted',
    'Hello,\n\nOn Monday we wrote code.\nFrom: the heart\n',
    'Hello,\n\nOn Monday we wrote code.\nFrom: the heart',
  ],
  ['answers between quotes', '> one?\nyes\n> two?\nno', '> one?\nyes\n> two?\nno'],
  [
    'answers between quotes, below a heading and above an unanswered quote',
    'Hi,\n\nOn 1 Jul 2003, Jane wrote:\n> Shall we meet?\n>\n> Soon?\n\nYes, at 10.\n\n> Where?\nHarbour.\n> -- \n> Jane\n-- \nJoe',
    'Hi,\n\n> Shall we meet?\n>\n> Soon?\n\nYes, at 10.\n\n> Where?\nHarbour.',
  ],
  ['an answer within the quote', '> one?\nyes\n> two?', '> one?\nyes'],
  ['an answer above and below the only quote', 'yes\n> one?\n\n> two?\nno', 'yes\n\nno'],
  ['an answer below the quote', 'On 1 Jul 2003, Jane wrote:\n> question?\n\nAnswer.', 'Answer.'],
  ['a signature', 'Answer.\n-- \nJane Doe\nHead of Answers', 'Answer.'],
  ['a telephone', 'Answer.\n\nSent from my iPhone', 'Answer.'],
  ['only a quote', '> old', ''],
  [
    'a forwarded message',
    'See below.\n\n---------- Forwarded message ---------\nold',
    'See below.\n\n---------- Forwarded message ---------\nold',
  ],
]

test('a mail without quotes keeps its whole text, without outer margins', () => {
  const text = 'Hello, \t\n\n\n\n  indented\u00a0\nOn Monday we wrote code.\u00a0'
  assert.equal(extractNewText(` \r\n\n${text}\n\t\n`), text)
  assert.equal(extractNewText(`${text}\n> old`), text.replace(/\s+$/gm, '').replace('Hello,', 'Hello,\n'))
})

const forwarded =
  'From: Jane <jane@a.example>\nDate: Tue, 1 Jul 2003 10:52\nSubject: Hello\nTo: Joe\n\nThe old text.\n> older'

for (const marker of [
  '---------- Forwarded message ---------',
  '-------- Forwarded Message --------',
  '-------- Weitergeleitete Nachricht --------',
  '-------- Message transféré --------',
  'Begin forwarded message:',
  'Anfang der weitergeleiteten Nachricht:',
  'Début du message réexpédié :',
])
  test(`F31: a forwarded mail below ${JSON.stringify(marker)} is kept, below a signature too`, () => {
    const text = `FYI\n\n${marker}\n${forwarded}`
    assert.equal(extractNewText(text), text)
    assert.equal(extractNewText(text.replaceAll('\n', '\r\n')), text)
    const signed = text.replace('FYI', 'FYI\n-- \nAda')
    assert.equal(extractNewText(signed), text.replace('FYI\n\n', 'FYI\n'))
    assert.equal(extractNewText(`Yes.\n\nOn 1 Jul 2003, Jane wrote:\n\n${text}`), 'Yes.')
  })

const outlook =
  'From: Jane <jane@a.example>\nSent: Tuesday, July 1, 2003 10:52 AM\nTo: Joe\nSubject: Hello\n\nThe old text.'

for (const [subject, answer] of [
  ['Re: Hello', 'See below.'],
  ['Re: Fwd: Hello', 'See below.'],
  ['FW: Hello', `See below.\n\n${outlook}`],
  ['WG: Hello', `See below.\n\n${outlook}`],
] as const)
  test(`F31: Outlook’s copied header below "${subject}" begins ${subject.startsWith('Re') ? 'history' : 'a forwarded mail'}`, () => {
    assert.equal(extractNewText(`See below.\n\n${outlook}`, subject), answer)
  })

for (const rule of ['--------', '________________________________', '-----'])
  test(`F31: the rule ${rule} above a copied header is removed with it`, () => {
    assert.equal(extractNewText(`The answer.\n\n${rule}\n${outlook}`), 'The answer.')
    assert.equal(extractNewText(`The answer.\n${rule}\n\n${outlook}`), 'The answer.')
    assert.equal(
      extractNewText(
        htmlToText(
          `<p>The answer.</p><hr><div><b>From:</b> Jane &lt;jane@a.example&gt;<br><b>Sent:</b> Tuesday<br><b>To:</b> Joe<br></div><p>The old text.</p>`,
        ),
      ),
      'The answer.',
    )
  })

test('the writer’s own rule stays', () => {
  assert.equal(extractNewText('One.\n--------\nTwo.'), 'One.\n--------\nTwo.')
})

for (const [name, text, extracted] of texts)
  test(`the new text is extracted: ${name}`, () => assert.equal(extractNewText(text), extracted))

test('hostile 2: text beyond 256 KiB is not copied', () => {
  assert.equal(extractNewText(`new\n> ${'old'.repeat(100_000)}`), '')
})
