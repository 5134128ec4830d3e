// The logo of the service.
export function Logo({ sizePx = 24 }: { sizePx?: number }) {
  return (
    <svg width={sizePx} height={sizePx} viewBox="0 0 32 32" aria-hidden="true" className="shrink-0">
      <rect width="32" height="32" rx="8" fill="#a84d08" />
      <g fill="none" stroke="#fff" strokeWidth="2.4" strokeLinecap="round" strokeLinejoin="round">
        <circle cx="13.5" cy="17" r="5.5" />
        <path d="M5.5 22.5h8M13.5 11.5h4c4 0 6.5-1.5 9-4.5v13c-2-2.6-4-3.6-6.5-3.5" />
      </g>
    </svg>
  )
}
