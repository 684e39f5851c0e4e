"""GPUs of this host through NVML, the vendor's management library."""

from collectors.nvml.collector import FASTEST_S, NvmlCollector, available
from collectors.nvml.discovery import NvmlHost, nvml_topology, own_gpus

__all__ = ["FASTEST_S", "NvmlCollector", "NvmlHost", "available", "nvml_topology", "own_gpus"]
