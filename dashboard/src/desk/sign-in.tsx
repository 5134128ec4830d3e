// The page without a session: how to make a link, and where it works.
import type { ReactNode } from 'react'
import { CodeBlock } from '../parts/code-block.tsx'
import { useTitle } from '../parts/use-title.ts'
import { Logo } from '../shell/logo.tsx'
import { desk } from '../texts/desk.ts'

const { signIn: words } = desk

/** `children`: the reason why the link was refused. */
export function SignIn({ children }: { children?: ReactNode }) {
  useTitle(desk.name)
  const port = location.port || '80'
  return (
    <main className="mx-auto grid min-h-dvh max-w-lg content-center gap-6 px-5 py-10">
      <header className="grid gap-3">
        <Logo sizePx={36} />
        <div>
          <h1 className="text-2xl font-semibold tracking-tight">{words.title}</h1>
          <p className="text-muted">{words.lead}</p>
        </div>
      </header>
      {children}
      <section className="grid gap-2">
        <h2 className="font-semibold">{words.command}</h2>
        <CodeBlock code="bin/posthorn operator link" label={words.command} />
        <p className="text-sm text-faint">{words.how}</p>
      </section>
      <section className="grid gap-2">
        <h2 className="font-semibold">{words.elsewhere}</h2>
        <CodeBlock code={`ssh -L ${port}:127.0.0.1:${port} HOST`} label={words.elsewhere} />
        <p className="text-sm text-faint">{words.elsewhereHow}</p>
      </section>
    </main>
  )
}
