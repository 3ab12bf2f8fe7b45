export interface HistoryCounts {
  charges: number;
  declines: number;
  crashes: number;
  faults: number;
  refunds: number;
  upgrades: number;
  deletions: number;
  suspensions: number;
  restores: number;
}
