import { optional, type Values, withDefault } from './variables.ts';

// The variables of traces. They are apart from `tracing.ts`, because commands read them without tracing anything.

/** The values of `OTEL_TRACES_SAMPLER` that are supported. Their names are those of OpenTelemetry. */
const samplerNames = [
  'always_on',
  'always_off',
  'traceidratio',
  'parentbased_always_on',
  'parentbased_always_off',
  'parentbased_traceidratio',
] as const;

/** A supported value of `OTEL_TRACES_SAMPLER`. */
export type SamplerName = (typeof samplerNames)[number];

/** Which calls are traced. */
export interface TracesSampler {
  readonly name: SamplerName;
  /** From 0 to 1; used only by the samplers with a ratio. */
  readonly share: number;
}

/** The variables from which {@link tracesSamplerOf} finds out which calls are traced. */
export const tracesVariables = {
  // Only its presence matters: OpenTelemetry reads the collector's settings itself.
  hasCollector: optional({
    name: 'OTEL_EXPORTER_OTLP_ENDPOINT',
    help: 'sends traces to this OpenTelemetry collector, such as http://localhost:4318',
    defaultText: 'no traces',
    rule: 'must be an http or https URL',
    parse: (text) => /^https?:$/.test(URL.parse(text)?.protocol ?? '') || undefined,
  }),
  samplerName: withDefault({
    name: 'OTEL_TRACES_SAMPLER',
    help: 'which calls are traced, as in OpenTelemetry',
    defaultText: 'parentbased_traceidratio',
    rule: `must be one of ${samplerNames.join(', ')}`,
    parse: (text) => samplerNames.find((name) => name === text),
  }),
  sampledShare: withDefault({
    name: 'OTEL_TRACES_SAMPLER_ARG',
    help: 'the share of calls that are traced, 0 to 1',
    defaultText: '1',
    rule: 'must be a number from 0 to 1',
    parse: (text) => (/^(0(\.\d+)?|1(\.0+)?)$/.test(text) ? Number(text) : undefined),
  }),
};

/** Returns which calls are traced; `undefined` without a collector. */
export function tracesSamplerOf({ hasCollector, samplerName, sampledShare }: Values<typeof tracesVariables>) {
  return hasCollector && ({ name: samplerName, share: sampledShare } satisfies TracesSampler);
}
