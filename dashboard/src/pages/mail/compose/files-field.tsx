// The files of a draft: picked, dropped or pasted, with their sizes against the limit.
import { Paperclip, X } from 'lucide-react'
import { useRef } from 'react'
import { writtenBytes } from '../../../parts/bytes.ts'
import { Button, IconButton } from '../../../parts/form/button.tsx'
import { Progress } from '../../../parts/progress.tsx'
import { writing } from '../../../texts/writing.ts'

interface FilesFieldProps {
  files: readonly File[]
  onChange: (files: readonly File[]) => void
  /** The limit for text, HTML and files together. Null until it is known. */
  limit: { usedBytes: number; mostBytes: number } | null
  lostNames: readonly string[]
  error: string | null | undefined
}

export function FilesField({ files, onChange, limit, lostNames, error }: FilesFieldProps) {
  const picker = useRef<HTMLInputElement>(null)
  return (
    <div className="grid gap-2">
      <div className="flex flex-wrap items-center gap-x-3 gap-y-1">
        <Button size="small" icon={Paperclip} onClick={() => picker.current?.click()}>
          {writing.attach}
        </Button>
        <span className="text-sm text-faint">{writing.attachHint}</span>
        <input
          ref={picker}
          type="file"
          multiple
          hidden
          aria-label={writing.attach}
          onChange={(event) => {
            onChange([...files, ...(event.target.files ?? [])])
            event.target.value = ''
          }}
        />
      </div>
      {lostNames.length > 0 && (
        <p role="status" className="text-sm text-wait">
          {writing.filesLost(lostNames.join(', '))}
        </p>
      )}
      <FileList files={files} onChange={onChange} />
      {limit && (files.length > 0 || limit.usedBytes > limit.mostBytes) && (
        <Progress
          label={writing.sizeUsed}
          value={limit.usedBytes}
          max={limit.mostBytes}
          format={writtenBytes}
          limit
        />
      )}
      {error && (
        <p role="alert" className="text-sm text-bad">
          {error}
        </p>
      )}
    </div>
  )
}

function FileList({ files, onChange }: Pick<FilesFieldProps, 'files' | 'onChange'>) {
  if (files.length === 0) return null
  const numbered = files.map((file, at) => ({ file, at }))
  return (
    <ul className="grid gap-1">
      {numbered.map(({ file, at }) => (
        <li
          key={`${at} ${file.name}`}
          className="flex items-center gap-2 rounded-md border py-0.5 pr-0.5 pl-3"
        >
          <span className="min-w-0 flex-1 truncate text-sm">{file.name}</span>
          <span className="numbers text-sm text-faint">{writtenBytes(file.size)}</span>
          <IconButton
            size="small"
            icon={X}
            label={writing.removeFile(file.name)}
            onClick={() => onChange(files.filter((one) => one !== file))}
          />
        </li>
      ))}
    </ul>
  )
}
