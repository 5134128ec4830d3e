// A sentence about what is pointed at or focused; never the only place where it stands.
import { Tooltip as Primitive } from 'radix-ui'
import type { ReactElement, ReactNode } from 'react'

export function Tooltip({ text, children }: { text: ReactNode; children: ReactElement }) {
  return (
    <Primitive.Provider delayDuration={350}>
      <Primitive.Root>
        <Primitive.Trigger asChild>{children}</Primitive.Trigger>
        <Primitive.Portal>
          <Primitive.Content
            sideOffset={6}
            collisionPadding={8}
            className="z-50 max-w-72 animate-fade rounded-md bg-ink px-2.5 py-1.5 text-sm text-pretty text-page"
          >
            {text}
          </Primitive.Content>
        </Primitive.Portal>
      </Primitive.Root>
    </Primitive.Provider>
  )
}
