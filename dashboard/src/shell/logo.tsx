// The sign of the service.
export function Logo({ sizePx = 24 }: { sizePx?: number }) {
  return (
    <svg width={sizePx} height={sizePx} viewBox="0 0 32 32" aria-hidden="true" className="shrink-0">
      <rect width="32" height="32" rx="8" fill="#a84d08" />
      <g fill="none" stroke="#fff" strokeWidth="2.6" strokeLinecap="round" strokeLinejoin="round">
        <circle cx="12.5" cy="17.5" r="5" />
        <path d="M5.5 12.5H19c3 0 4.5-1.5 7-4v15c-2.5-2.5-4-4-7-4h-1.700" />
      </g>
    </svg>
  )
}
