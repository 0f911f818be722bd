import { LineChart } from 'echarts/charts';
import { GridComponent, LegendComponent } from 'echarts/components';
import { init, use } from 'echarts/core';
import { SVGRenderer } from 'echarts/renderers';
import type { LoadReport } from './report.ts';

use([LineChart, GridComponent, LegendComponent, SVGRenderer]);

/** Colours that are readable on a light and on a dark page. */
const ink = '#7b8794';
const colors = { first: '#7fa6d9', second: '#2f7de1', third: '#d9534f' };

type Point = readonly [x: number, y: number | undefined];

interface Line {
  readonly name: string;
  readonly color: string;
  readonly points: readonly Point[];
}

export function throughputChart({ by_second: seconds, seconds: length }: LoadReport): string {
  const line = (name: string, color: string, count: (second: (typeof seconds)[number]) => number): Line => ({
    name,
    color,
    // The last second may be incomplete.
    points: seconds.map((second) => [second.second, count(second) / Math.min(1, length - second.second || 1)]),
  });
  return chart(
    [
      line('sent', colors.first, ({ sent }) => sent),
      line('done', colors.second, ({ done }) => done),
      line('wrong or dropped', colors.third, ({ wrong, dropped }) => wrong + dropped),
    ],
    { x: { name: 's', minInterval: 1 }, y: { name: 'calls/s', min: 0 } },
  );
}

export function latencyChart({ by_second: seconds }: LoadReport): string {
  const line = (name: 'p50' | 'p90' | 'p99' | 'max', color: string): Line => ({
    name,
    color,
    points: seconds.map((second) => [second.second, second[`${name}_ms`]]),
  });
  return chart([line('p50', colors.first), line('p90', ink), line('p99', colors.second), line('max', colors.third)], {
    x: { name: 's', minInterval: 1 },
    y: { name: 'ms', type: 'log' },
  });
}

/** The share of wrong, missing and dropped calls in each second. */
export function errorChart({ by_second: seconds }: LoadReport): string {
  const points = seconds.map(({ second, sent, wrong, dropped }): Point => {
    return [second, (100 * (wrong + dropped)) / Math.max(1, sent + dropped, wrong + dropped)];
  });
  return chart([{ name: 'wrong or dropped', color: colors.third, points }], {
    x: { name: 's', minInterval: 1 },
    y: { name: '%', min: 0, max: ({ max }: { max: number }) => Math.max(1, Math.ceil(max)) },
  });
}

/** The p99 of two runs in each second. */
export function comparedLatencyChart(a: LoadReport, b: LoadReport): string {
  return chart(
    twoLines(a, b, ({ by_second }) => by_second.map(({ second, p99_ms }) => [second, p99_ms])),
    {
      x: { name: 's', minInterval: 1 },
      y: { name: 'ms', type: 'log' },
    },
  );
}

/** The latencies of two runs by percentile. */
export function comparedPercentileChart(a: LoadReport, b: LoadReport): string {
  return chart(twoLines(a, b, percentilePoints), percentileAxes);
}

function twoLines(a: LoadReport, b: LoadReport, pointsOf: (report: LoadReport) => readonly Point[]): Line[] {
  return [
    { name: 'A', color: colors.second, points: pointsOf(a) },
    { name: 'B', color: colors.third, points: pointsOf(b) },
  ];
}

/** Latency by percentile; the axis is stretched towards 100 %, where the slow responses are. */
export function percentileChart(report: LoadReport): string {
  return chart([{ name: 'latency', color: colors.second, points: percentilePoints(report) }], percentileAxes);
}

function percentilePoints({ percentiles }: LoadReport): Point[] {
  return percentiles.map(([percent, ms]) => [1 / (1 - percent / 100), ms]);
}

const percentLabel = (inverseRemainder: number) => `${Number((100 - 100 / inverseRemainder).toFixed(4))} %`;
const percentileAxes = {
  x: { name: '', type: 'log', axisLabel: { color: ink, formatter: percentLabel } },
  y: { name: 'ms', type: 'log' },
};

function chart(lines: readonly Line[], axes: { readonly x: object; readonly y: object }): string {
  const drawing = init(null, null, { renderer: 'svg', ssr: true, width: 480, height: 260 });
  const style = {
    nameTextStyle: { color: ink },
    axisLabel: { color: ink },
    splitLine: { lineStyle: { opacity: 0.3 } },
  };
  drawing.setOption({
    animation: false,
    grid: { left: 54, right: 28, top: 40, bottom: 30 },
    legend: { show: lines.length > 1, top: 4, icon: 'roundRect', itemHeight: 4, textStyle: { color: ink } },
    xAxis: { type: 'value', ...style, splitLine: { show: false }, ...axes.x },
    yAxis: { type: 'value', ...style, ...axes.y },
    series: lines.map(({ name, color, points }) => ({
      type: 'line',
      name,
      color,
      data: points.map(([x, y]) => [x, y ?? null]),
      sampling: 'max',
      // A line of one or two points is hard to see, so its points are marked.
      showSymbol: points.length < 3,
    })),
  });
  const svg = drawing.renderToSVGString();
  drawing.dispose();
  return svg;
}
