// Merges the latest live reading into a host. Pure.
import type { Gpu, Host, HostLiveFrame } from "../api/types.ts";

/** The host as it reads at a frame of its stream; one that is not newer than what is known changes nothing. */
export function withReading(host: Host, frame: HostLiveFrame): Host {
  if (host.live && frame.at <= host.live.at) return host; // both are UTC with milliseconds: they sort as text
  const of = (metric: string) => frame.host[metric] ?? null;
  return {
    ...host,
    live: {
      cpu_ratio: of("host_cpu_ratio"),
      memory_used_bytes: of("host_memory_used_bytes"),
      load1: of("host_load1"),
      rx_bps: of("host_network_rx_bps"),
      tx_bps: of("host_network_tx_bps"),
      disk_used_bytes: of("host_disk_used_bytes"),
      at: frame.at,
    },
    gpus: host.gpus.map((gpu) => cardReading(gpu, frame)),
  };
}

function cardReading(gpu: Gpu, frame: HostLiveFrame): Gpu {
  const values = frame.gpus[gpu.uuid];
  if (!values) return gpu;
  const of = (metric: string) => values[metric] ?? null;
  return {
    ...gpu,
    live: {
      utilization_ratio: of("gpu_utilization_ratio"),
      memory_used_bytes: of("gpu_memory_used_bytes"),
      temperature_celsius: of("gpu_temperature_celsius"),
      power_watts: of("gpu_power_watts"),
      clock_sm_hertz: of("gpu_clock_sm_hertz"),
      at: frame.at,
    },
  };
}
