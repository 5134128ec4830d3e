// A chart of numbers over time in the colours of the theme, and the same numbers as a table for who hears the page.
import { useEffect, useRef } from 'react'
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
  // biome-ignore lint/correctness/useExhaustiveDependencies: the theme's colours are read when it changes
  useEffect(() => {
    const element = frame.current
    if (!element) return
    const plot = new uPlot(
      optionsOf({ element, series, heightPx, format }),
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
      <div ref={frame} aria-hidden className="min-w-0" style={{ height: heightPx }} />
      <ChartTable {...{ label, times, series, format }} />
    </figure>
  )
}

type OptionsInput = Required<Pick<ChartProps, 'series' | 'heightPx' | 'format'>> & { element: HTMLElement }

function optionsOf({ element, series, heightPx, format }: OptionsInput): uPlot.Options {
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
      { ...axis, grid: { show: false } },
      {
        ...axis,
        size: 44,
        grid: { stroke: color('line'), width: 1 },
        values: (_plot, splits) => splits.map((value) => format(value)),
      },
    ],
    scales: { y: { range: (_plot, _min, max) => [0, Math.max(1, (max ?? 0) * 1.08)] } },
    series: [{}, ...series.map((one) => lineOf(one, color))],
  }
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
              <td key={name}>{values[index] == null ? parts.notAvailable : format(values[index])}</td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  )
}
