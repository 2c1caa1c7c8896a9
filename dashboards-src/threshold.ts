// The limits of the alert rules: a panel turns orange or red when its alert
// fires. tests/dashboards compares these values with the rules.

import { ThresholdsConfigBuilder, ThresholdsMode } from '@grafana/grafana-foundation-sdk/dashboard';

export interface Limits {
  warning?: number;
  critical?: number;
  /** Colour below both limits. Default: green. */
  base?: string;
}

export const limits = {
  errorShare: { warning: 0.01 }, // RunErrors
  lagSeconds: { warning: 2, critical: 10 }, // ReplicationLagGrowing, ReplicationLagHigh
  flowControl: { warning: 0.1, critical: 0.4 }, // GaleraFlowControlHigh, GaleraFlowControlCritical
  cpu: { warning: 0.9 }, // HostCPUSaturated, GeneratorSaturated
  connections: { warning: 0.9 }, // DatabaseConnectionsNearLimit
  lockWaits: { warning: 0.25 }, // DatabaseLockWaits
  conflicts: { warning: 0.01 }, // GaleraCertificationFailures
  drainSeconds: { warning: 60 }, // RunDrainSlow
  diskQueue: { warning: 10 }, // HostDiskSaturated
} as const;

export function thresholds(of: Limits): ThresholdsConfigBuilder {
  // The first step has no lower bound: null in JSON.
  const steps: { value: number; color: string }[] = [{ value: null as unknown as number, color: of.base ?? 'green' }];
  if (of.warning !== undefined) steps.push({ value: of.warning, color: 'orange' });
  if (of.critical !== undefined) steps.push({ value: of.critical, color: 'red' });
  return new ThresholdsConfigBuilder().mode(ThresholdsMode.Absolute).steps(steps);
}

/** For values that are neither good nor bad: one neutral colour. */
export const neutral: Limits = { base: 'text' };
