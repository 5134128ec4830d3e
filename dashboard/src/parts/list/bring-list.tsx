// The input for a list: a file to choose or drop, or lines to paste.
import { FileUp } from 'lucide-react'
import { type DragEvent, useId, useState } from 'react'
import { batches } from '../../texts/batches.ts'
import { classes } from '../classes.ts'
import { TextArea } from '../form/field.tsx'

const mostMebibytes = 10

interface BringListProps {
  text: string
  onText: (text: string) => void
}

export function BringList({ text, onText }: BringListProps) {
  const [error, setError] = useState<string | null>(null)
  const take = async (file: File | undefined) => {
    if (!file) return
    if (file.size > mostMebibytes * 2 ** 20) return setError(batches.fileTooLarge(mostMebibytes))
    const content = await file.text()
    if (content.includes('\0')) return setError(batches.notText)
    setError(null)
    onText(content)
  }
  return (
    <div className="grid grid-cols-1 gap-4">
      <FileDrop onFile={(file) => void take(file)} />
      {error && (
        <p role="alert" className="text-sm text-bad">
          {error}
        </p>
      )}
      <TextArea
        label={batches.paste}
        rows={5}
        value={text.length > 100_000 ? `${text.slice(0, 100_000)}…` : text}
        readOnly={text.length > 100_000}
        placeholder={batches.pastePlaceholder}
        spellCheck={false}
        onChange={(event) => onText(event.target.value)}
        className="font-mono text-sm"
      />
    </div>
  )
}

function FileDrop({ onFile }: { onFile: (file: File | undefined) => void }) {
  const id = useId()
  const [isOver, setIsOver] = useState(false)
  const drop = (event: DragEvent) => {
    event.preventDefault()
    setIsOver(false)
    onFile(event.dataTransfer.files[0])
  }
  return (
    <label
      htmlFor={id}
      onDragOver={(event) => {
        event.preventDefault()
        setIsOver(true)
      }}
      onDragLeave={() => setIsOver(false)}
      onDrop={drop}
      className={classes(
        'flex cursor-pointer flex-wrap items-center justify-center gap-x-2 gap-y-1 rounded-md border border-dashed px-4 py-6 text-center focus-within:outline-2 focus-within:outline-accent',
        isOver ? 'border-accent bg-accent-soft' : 'border-edge bg-sunken hover:border-accent',
      )}
    >
      <FileUp size={18} aria-hidden className="text-accent" />
      <span className="font-medium">{batches.bring}</span>
      <span className="text-muted">{batches.drop}</span>
      <input
        id={id}
        type="file"
        accept=".csv,.txt,.tsv,text/csv,text/plain"
        className="sr-only"
        onChange={(event) => {
          onFile(event.target.files?.[0])
          event.target.value = ''
        }}
      />
    </label>
  )
}
