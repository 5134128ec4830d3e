// A chart of numbers over time in the colours of the theme, and the same numbers as a table for who hears the page.
import { useEffect, useRef, useState } from 'react'
import uPlot from 'uplot'
import 'uplot/dist/uPlot.min.css'
import { parts } from '../texts/parts.ts'
import type { Tone } from './badge.tsx'
import { useThemeName } from './theme.ts'
import { exactTime } from './time.tsx'

export interface Series {
  label: string
  tone: Tone
  /** One for each time; null where there is none. */
  values: readonly (number | null)[]
  /** Columns instead of a line. */
  bars?: boolean
}

interface ChartProps {
  label: string
  /** ISO, rising. */
  times: readonly string[]
  series: readonly Series[]
  heightPx?: number
  format?: (value: number) => string
}

const numbers = new Intl.NumberFormat('en', { notation: 'compact' })

export function Chart({ label, times, series, heightPx = 220, format = numbers.format }: ChartProps) {
  const frame = useRef<HTMLDivElement>(null)
  const theme = useThemeName()
  const [at, setAt] = useState<number | null>(null)
  // biome-ignore lint/correctness/useExhaustiveDependencies: the theme's colours are read when it changes
  useEffect(() => {
    const element = frame.current
    if (!element) return
    const plot = new uPlot(
      optionsOf({ element, series, heightPx, format, onPoint: setAt }),
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
      <Legend {...{ series, times, format, at }} />
      <div ref={frame} aria-hidden className="min-w-0" style={{ height: heightPx }} />
      <ChartTable {...{ label, times, series, format }} />
    </figure>
  )
}

interface OptionsInput extends Required<Pick<ChartProps, 'series' | 'heightPx' | 'format'>> {
  element: HTMLElement
  /** Which of the times the pointer is at. */
  onPoint: (index: number | null) => void
}

function optionsOf({ element, series, heightPx, format, onPoint }: OptionsInput): uPlot.Options {
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
    padding: [8, 8, 0, 0],
    cursor: { y: false, points: { size: 6 } },
    axes: [
      { ...axis, grid: { show: false }, values: (_plot, splits) => splits.map(writtenMoment) },
      {
        ...axis,
        size: 44,
        grid: { stroke: color('line'), width: 1 },
        values: (_plot, splits) => splits.map((value) => format(value)),
      },
    ],
    hooks: { setCursor: [({ cursor }) => onPoint(cursor.idx ?? null)] },
    scales: {
      x: { range: (plot, min, max) => roomForBars(plot, min, max, series) },
      y: { range: (_plot, _min, max) => [0, Math.max(1, (max ?? 0) * 1.08)] },
    },
    series: [{}, ...series.map((one) => lineOf(one, color))],
  }
}

const hour = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit' })
const day = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short' })

/** The hour; at midnight the day. */
function writtenMoment(atSeconds: number): string {
  const at = new Date(atSeconds * 1000)
  return (at.getHours() === 0 && at.getMinutes() === 0 ? day : hour).format(at)
}

/** The first and the last column are as broad as the others. */
function roomForBars(plot: uPlot, min: number, max: number, series: readonly Series[]): [number, number] {
  const count = plot.data[0].length
  if (count < 2 || !series.some(({ bars }) => bars)) return [min, max]
  const half = (max - min) / (count - 1) / 2
  return [min - half, max + half]
}

function lineOf({ label, tone, bars }: Series, color: (name: string) => string): uPlot.Series {
  const stroke = color(tone)
  const points = { show: false }
  if (!bars) return { label, stroke, width: 1.75, points }
  return {
    label,
    stroke,
    fill: stroke,
    width: 0,
    points,
    paths: uPlot.paths.bars!({ size: [0.7, 40], radius: 0.15 }),
  }
}

/** A canvas knows no variables. */
function resolveColor(element: HTMLElement, value: string): string {
  const probe = document.createElement('span')
  probe.style.color = value
  element.append(probe)
  const { color } = getComputedStyle(probe)
  probe.remove()
  return color
}

type LegendProps = Required<Pick<ChartProps, 'series' | 'times' | 'format'>> & { at: number | null }

/** Names the lines; while the pointer is over the chart, with their values there. */
function Legend({ series, times, format, at }: LegendProps) {
  const time = at === null ? undefined : times[at]
  return (
    <ul aria-hidden className="numbers mb-2 flex flex-wrap gap-x-4 gap-y-1 text-xs text-muted">
      {series.map(({ label, tone, values }) => (
        <li key={label} className="flex items-center gap-1.5">
          <span className="size-2 rounded-full" style={{ background: `var(--${tone})` }} />
          {label}
          {time && <strong className="text-ink">{writtenValue(values[at!], format)}</strong>}
        </li>
      ))}
      {time && <li className="ml-auto">{exactTime(time)}</li>}
    </ul>
  )
}

function writtenValue(value: number | null | undefined, format: (value: number) => string): string {
  return value == null ? parts.notAvailable : format(value)
}

function ChartTable({
  label,
  times,
  series,
  format,
}: Required<Pick<ChartProps, 'label' | 'times' | 'series' | 'format'>>) {
  return (
    <table className="sr-only">
      <caption>{parts.chartTable(label)}</caption>
      <thead>
        <tr>
          <th scope="col">{parts.time}</th>
          {series.map((one) => (
            <th key={one.label} scope="col">
              {one.label}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {times.map((at, index) => (
          <tr key={at}>
            <th scope="row">{exactTime(at)}</th>
            {series.map(({ label: name, values }) => (
              <td key={name}>{writtenValue(values[index], format)}</td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  )
}
