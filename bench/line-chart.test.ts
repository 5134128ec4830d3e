// Tests that a chart shows each value at its time, inside its panel.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { drawPanels } from './line-chart.ts'

const draw = (values: readonly number[]) =>
  drawPanels('A soak', [{ title: 'Memory', unit: 'MB', lines: [{ name: 'worker 1', values }] }], {
    minutes: [0, 30, 60],
    warmUntil: 20,
  })

const pointsOf = (svg: string) =>
  /<path d="M([^"]*)" fill="none"/
    .exec(svg)![1]!
    .split('L')
    .map((point) => point.split(' ').map(Number))

test('a line begins at the axis of values, ends at the last minute, and higher values are higher', () => {
  const [first, middle, last] = pointsOf(draw([0, 80, 40])) as [number[], number[], number[]]
  assert.deepEqual([first[0], middle[0], last[0]], [52, 244, 436])
  assert.equal(first[1], 156, 'zero is the bottom of the panel')
  assert.ok(middle[1]! < last[1]! && last[1]! < first[1]!)
})

test('the axes have labels and units for values from 0.02 to a million', () => {
  for (const highest of [0.02, 1, 7, 250, 1_000_000]) {
    const svg = draw([0, highest / 2, highest])
    const labels = [...svg.matchAll(/text-anchor="end">([\d.,]+)</g)].map(([, label]) =>
      Number(label!.replaceAll(',', '')),
    )
    assert.ok(labels.length >= 3 && labels.length <= 7, `${highest}: ${labels}`)
    assert.ok(labels.at(-1)! >= highest, `${highest}: ${labels}`)
    assert.match(svg, />Memory, MB</)
    assert.match(svg, />minutes</)
    for (const [, y] of pointsOf(svg)) assert.ok(y! >= 44 && y! <= 156)
  }
})

test('an empty chart and constant zeros are drawn', () => {
  assert.match(draw([]), /<svg /)
  assert.deepEqual(
    pointsOf(draw([0, 0, 0])).map(([, y]) => y),
    [156, 156, 156],
  )
})
