// Draws panels of lines over time as an SVG that is legible on light and on dark pages.

export interface Panel {
  title: string
  unit: string
  lines: { name: string; values: readonly number[] }[]
}

const width = 900
const panelHeight = 190
const columns = 2
const margin = { left: 52, right: 14, top: 44, bottom: 34 }
/** Each color has enough contrast on white and on dark grey. */
const colors = ['#2a78d6', '#d2641e', '#23905a', '#a34fc4', '#b8860b', '#c2417b']
const style = `text { font: 11px ui-sans-serif, system-ui, Helvetica, Arial, sans-serif; fill: #334155 }
.title { font-size: 13px; font-weight: 600; fill: #0f172a } .card { fill: #ffffff; stroke: #cbd5e1 } .grid { stroke: #e2e8f0 }
.warm { fill: #94a3b8; fill-opacity: .18 }
@media (prefers-color-scheme: dark) { text { fill: #cbd5e1 } .title { fill: #f8fafc } .card { fill: #0f172a; stroke: #334155 } .grid { stroke: #263449 } }`

/** `minutes` has the time of each value. The time before `warmUntil` is shaded. */
export function drawPanels(
  title: string,
  panels: readonly Panel[],
  { minutes, warmUntil }: { minutes: readonly number[]; warmUntil: number },
): string {
  const height = 40 + Math.ceil(panels.length / columns) * panelHeight
  const drawn = panels.map((panel, index) => {
    const x = (index % columns) * (width / columns)
    const y = 36 + Math.floor(index / columns) * panelHeight
    return `<g transform="translate(${x} ${y})">${drawPanel(panel, minutes, warmUntil)}</g>`
  })
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-labelledby="title">`,
    `<title id="title">${title}</title><style>${style}</style>`,
    `<rect class="card" x=".5" y=".5" width="${width - 1}" height="${height - 1}" rx="10"/>`,
    `<text class="title" x="16" y="24">${title}</text>`,
    ...drawn,
    '</svg>\n',
  ].join('\n')
}

function drawPanel({ title, unit, lines }: Panel, minutes: readonly number[], warmUntil: number): string {
  const right = width / columns - margin.right
  const bottom = panelHeight - margin.bottom
  const step = niceStep(Math.max(1, ...lines.flatMap(({ values }) => values)))
  const top = step * Math.max(1, Math.ceil(Math.max(1, ...lines.flatMap(({ values }) => values)) / step))
  const last = minutes.at(-1) ?? 1
  const at = (minute: number) => margin.left + (minute / last) * (right - margin.left)
  const up = (value: number) => bottom - (value / top) * (bottom - margin.top)
  const parts = [
    `<rect class="warm" x="${margin.left}" y="${margin.top}" width="${round(at(warmUntil) - margin.left)}" height="${bottom - margin.top}"/>`,
    `<text class="title" x="${margin.left}" y="16">${title}, ${unit}</text>`,
  ]
  for (let value = 0; value <= top; value += step)
    parts.push(
      `<path class="grid" d="M${margin.left} ${round(up(value))}H${right}"/>`,
      `<text x="${margin.left - 6}" y="${round(up(value) + 4)}" text-anchor="end">${value.toLocaleString('en')}</text>`,
    )
  const minuteStep = niceStep(last)
  for (let minute = 0; minute <= last; minute += minuteStep)
    parts.push(`<text x="${round(at(minute))}" y="${bottom + 15}" text-anchor="middle">${minute}</text>`)
  parts.push(`<text x="${right}" y="${bottom + 28}" text-anchor="end">minutes</text>`)
  let keyAt = margin.left
  for (const [index, { name, values }] of lines.entries()) {
    const color = colors[index % colors.length]!
    const points = values.map((value, number) => `${round(at(minutes[number]!))} ${round(up(value))}`)
    parts.push(
      `<path d="M${points.join('L')}" fill="none" stroke="${color}" stroke-width="1.6"/>`,
      `<rect x="${keyAt}" y="24" width="12" height="4" fill="${color}"/>`,
      `<text x="${keyAt + 16}" y="30">${name}</text>`,
    )
    keyAt += 30 + name.length * 6.2
  }
  return parts.join('\n')
}

/** Returns 1, 2 or 5 times a power of ten, so that about four steps reach `highest`. */
function niceStep(highest: number): number {
  const power = 10 ** Math.floor(Math.log10(highest / 4))
  const factor = [1, 2, 5, 10].find((candidate) => candidate * power * 4 >= highest) ?? 10
  return factor * power
}

function round(value: number): number {
  return Math.round(value * 10) / 10
}
