// A chart of numbers over time in the theme's colours, with the values of the hovered moment and a table of all values.

import { useEffect, useRef, useState } from 'react'
import uPlot from 'uplot'
import { Scrolled } from './scrolled.tsx'
import 'uplot/dist/uPlot.min.css'
import { parts } from '../texts/parts.ts'
import type { Tone } from './badge.tsx'
import { useThemeName } from './theme.ts'
import { exactTime } from './time.tsx'

export interface Series {
  label: string
  tone: Tone | 'violet'
  /** One value for each time. Null if there is none. */
  values: readonly (number | null)[]
  /** Columns instead of a line. */
  bars?: boolean
}

interface ChartProps {
  label: string
  /** ISO 8601, ascending. */
  times: readonly string[]
  series: readonly Series[]
  heightPx?: number
  format?: (value: number) => string
}

interface Pointed {
  index: number
  leftPx: number
}

const numbers = new Intl.NumberFormat('en', { notation: 'compact' })
const daySeconds = 86_400
const dayCounts = [1, 2, 7, 14, 28]
const hourText = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit' })
const dayText = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short' })

const wholeSteps = Array.from({ length: 10 }, (_, power) =>
  [1, 2, 5].map((step) => step * 10 ** power),
).flat()

export function Chart({ label, times, series, heightPx = 220, format = numbers.format }: ChartProps) {
  const frame = useRef<HTMLDivElement>(null)
  const theme = useThemeName()
  const [pointed, setPointed] = useState<Pointed | null>(null)
  // biome-ignore lint/correctness/useExhaustiveDependencies: a new theme has new colours to read
  useEffect(() => {
    const element = frame.current
    if (!element) return
    const plot = new uPlot(
      optionsOf({ element, times, series, heightPx, format, onPoint: setPointed }),
      [
        times.map((at) => Date.parse(at) / 1000),
        ...series.map(({ values }) => [...values]),
      ] as uPlot.AlignedData,
      element,
    )
    const resized = new ResizeObserver(() => plot.setSize({ width: element.clientWidth, height: heightPx }))
    resized.observe(element)
    return () => {
      resized.disconnect()
      plot.destroy()
    }
  }, [times, series, heightPx, format, theme])
  return (
    <figure aria-label={label} className="min-w-0">
      <Legend series={series} />
      <div ref={frame} aria-hidden className="relative min-w-0" style={{ height: heightPx }}>
        {pointed && times[pointed.index] && (
          <Reading pointed={pointed} times={times} series={series} format={format} />
        )}
      </div>
      <ChartTable label={label} times={times} series={series} format={format} />
    </figure>
  )
}

interface OptionsInput extends Required<Pick<ChartProps, 'times' | 'series' | 'heightPx' | 'format'>> {
  element: HTMLElement
  onPoint: (pointed: Pointed | null) => void
}

function optionsOf(input: OptionsInput): uPlot.Options {
  const { element, times, series, heightPx, format, onPoint } = input
  const color = (name: string) => resolveColor(element, `var(--${name})`)
  const axis = {
    stroke: color('faint'),
    font: '12px ui-sans-serif, system-ui, sans-serif',
    ticks: { show: false },
  }
  return {
    width: element.clientWidth,
    height: heightPx,
    legend: { show: false },
    padding: [8, 22, 0, 0],
    cursor: { y: false, points: { size: 6 } },
    axes: [
      {
        ...axis,
        grid: { show: false },
        size: 28,
        space: 64,
        values: writeTimes,
        ...(isDaily(times) && { incrs: dayCounts.map((days) => days * daySeconds) }),
      },
      {
        ...axis,
        size: 44,
        grid: { stroke: color('line'), width: 1 },
        // Counts have no fractions.
        incrs: wholeSteps,
        values: (_plot, splits) => splits.map((value) => format(value)),
      },
    ],
    scales: { y: { range: (_plot, _min, max) => [0, Math.max(1, (max ?? 0) * 1.08)] } },
    series: [{}, ...series.map((one) => lineOf(one, color, series.length))],
    hooks: {
      setCursor: [
        ({ cursor: { idx, left = -1 }, bbox }) =>
          onPoint(
            idx == null || left < 0 ? null : { index: idx, leftPx: left + bbox.left / devicePixelRatio },
          ),
      ],
    },
  }
}

/** Returns whether the times are days. Daily charts have no marks within a day. */
function isDaily(times: readonly string[]): boolean {
  const [last, before] = [times.at(-1), times.at(-2)]
  return !!last && !!before && Date.parse(last) - Date.parse(before) >= daySeconds * 1000
}

/** Writes days as dates and hours as clock times. Midnight shows its date. */
function writeTimes(_plot: uPlot, splits: number[], _axis: number, _space: number, step: number): string[] {
  return splits.map((seconds) => {
    const at = new Date(seconds * 1000)
    return step >= daySeconds || at.getHours() === 0 ? dayText.format(at) : hourText.format(at)
  })
}

function lineOf(
  { label, tone, bars }: Series,
  color: (name: string) => string,
  seriesCount: number,
): uPlot.Series {
  const stroke = color(tone)
  const points = { show: false }
  // Several filled lines would hide each other.
  if (!bars)
    return { label, stroke, width: 1.75, points, ...(seriesCount === 1 && { fill: color(`${tone}-soft`) }) }
  return {
    label,
    stroke,
    fill: stroke,
    width: 0,
    points,
    paths: uPlot.paths.bars!({ size: [0.7, 40], radius: 0.15 }),
  }
}

/** A canvas does not resolve CSS variables. */
function resolveColor(element: HTMLElement, value: string): string {
  const probe = document.createElement('span')
  probe.style.color = value
  element.append(probe)
  const { color } = getComputedStyle(probe)
  probe.remove()
  return color
}

function Legend({ series }: { series: readonly Series[] }) {
  return (
    <ul aria-hidden className="mb-2 flex flex-wrap gap-x-4 gap-y-1 text-xs text-muted">
      {series.map(({ label, tone }) => (
        <li key={label} className="flex items-center gap-1.5">
          <span className="size-2 rounded-full" style={{ background: `var(--${tone})` }} />
          {label}
        </li>
      ))}
    </ul>
  )
}

type Numbers = Required<Pick<ChartProps, 'times' | 'series' | 'format'>>

/** The values of the hovered moment. */
function Reading({ pointed: { index, leftPx }, times, series, format }: Numbers & { pointed: Pointed }) {
  const isRight = leftPx > 200
  return (
    <div
      className="pointer-events-none absolute top-2 z-10 rounded-md bg-surface px-3 py-2 text-xs shadow-overlay"
      style={{ left: leftPx, transform: `translateX(${isRight ? 'calc(-100% - 10px)' : '10px'})` }}
    >
      <p className="mb-1 whitespace-nowrap text-faint">{exactTime(times[index]!)}</p>
      {series.map(({ label, tone, values }) => (
        <p key={label} className="flex items-center gap-1.5 whitespace-nowrap">
          <span className="size-2 rounded-full" style={{ background: `var(--${tone})` }} />
          <span className="flex-1 pr-3 text-muted">{label}</span>
          <span className="numbers font-medium">{write(values[index], format)}</span>
        </p>
      ))}
    </div>
  )
}

function write(value: number | null | undefined, format: (value: number) => string): string {
  return value == null ? parts.notAvailable : format(value)
}

function ChartTable({ label, times, series, format }: Numbers & { label: string }) {
  return (
    <details className="mt-1 text-sm">
      <summary className="w-fit rounded-sm text-xs text-faint hover:text-ink">{parts.asTable}</summary>
      <Scrolled label={parts.chartTable(label)} className="mt-2 max-h-72 overflow-auto rounded-md border">
        <table className="w-full text-left">
          <caption className="sr-only">{parts.chartTable(label)}</caption>
          <thead className="sticky top-0 bg-surface text-faint">
            <tr>
              <th scope="col" className="px-3 py-1.5 font-medium">
                {parts.time}
              </th>
              {series.map((one) => (
                <th key={one.label} scope="col" className="px-3 py-1.5 text-right font-medium">
                  {one.label}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {times.map((at, index) => (
              <tr key={at} className="border-t">
                <th scope="row" className="px-3 py-1 font-normal whitespace-nowrap text-muted">
                  {exactTime(at)}
                </th>
                {series.map(({ label: name, values }) => (
                  <td key={name} className="numbers px-3 py-1 text-right">
                    {write(values[index], format)}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </Scrolled>
    </details>
  )
}
