"""The list of presets: what each is, its sizes, its sources. Data only, so that listing them costs nothing."""

from __future__ import annotations

from twin.topology.presets.base import Parameter, Preset

_UNITS = "how many scalable units"
_SHELVES = Parameter("spare_shelves", 3, "power shelves of a rack that may fail (the vendor does not say)", range(5))
_SUPERPOD = "docs.nvidia.com/dgx-superpod/reference-architecture"

PRESETS: dict[str, Preset] = {
    p.name: p
    for p in (
        Preset(
            "b300-superpod-ethernet",
            "DGX B300 SuperPOD on Spectrum-4 Ethernet: 64 nodes a unit, every 800G NIC split over the planes",
            f"{_SUPERPOD}/scalable-infrastructure-b300",
            (
                Parameter("scalable_units", 1, _UNITS, range(1, 17)),
                Parameter("planes", 2, "planes a NIC is split over (4 is derived, no vendor table)", (2, 4)),
            ),
            "hgx:b300_superpod_ethernet",
            {
                2: (8192, "two tiers of 128 x 400G (k^2/2), a port of each NIC in every plane"),
                4: (32_768, "two tiers of 256 x 200G (k^2/2), a port of each NIC in every plane"),
            },
        ),
        Preset(
            "b300-superpod-xdr",
            "DGX B300 SuperPOD on Quantum-X800 XDR InfiniBand, rail-optimised: 72 nodes a unit",
            f"{_SUPERPOD}/scalable-infrastructure-b300-xdr",
            (Parameter("scalable_units", 1, _UNITS, range(1, 19)),),
            "hgx:b300_superpod_xdr",
            {0: (10_368, "two tiers of 144 ports (k^2/2)")},
        ),
        Preset(
            "dgx-b200-ndr",
            "DGX B200 SuperPOD on Quantum-2 NDR InfiniBand: 32 nodes a unit, three tiers from 16 units on",
            f"{_SUPERPOD}-scalable-infrastructure-b200; which spine meets which core is derived",
            (Parameter("scalable_units", 2, _UNITS, (1, 2, 4, 8, 16, 32, 64)),),
            "hgx:dgx_b200_ndr",
            {0: (65_536, "three tiers of 64 ports (k^3/4); the vendor's table ends at 64 units, 16,384 GPUs")},
        ),
        Preset(
            "hgx-b200",
            "HGX B200 servers, rail-optimised, one 400G a GPU on Spectrum-4 switches",
            "docs.nvidia.com/enterprise-reference-architectures/hgx-ai-factory-h100-h200-b200; counts derived",
            (Parameter("nodes", 32, "how many servers", range(1, 1025)),),
            "hgx:hgx_b200",
            {0: (8192, "two tiers of 128 ports (k^2/2)")},
        ),
        Preset(
            "hgx-h100",
            "HGX H100 or H200 servers, rail-optimised, one 400G a GPU on Spectrum-4 switches",
            "docs.nvidia.com/enterprise-reference-architectures/hgx-ai-factory-h100-h200-b200; counts derived",
            (Parameter("nodes", 32, "how many servers", range(1, 1025)),),
            "hgx:hgx_h100",
            {0: (8192, "two tiers of 128 ports (k^2/2)")},
        ),
        Preset(
            "gb300-nvl72-superpod",
            "GB300 NVL72 racks on XDR InfiniBand: 8 racks, 144 trays and 576 GPUs a unit",
            "rack: vendor NVL72 documents; leaves and spines as the 576-port XDR unit (derived)",
            (Parameter("scalable_units", 1, _UNITS, range(1, 19)), _SHELVES),
            "nvl72:gb300_nvl72_superpod",
            {0: (10_368, "two tiers of 144 ports (k^2/2)")},
        ),
        Preset(
            "gb300-nvl72-ethernet",
            "GB300 NVL72 racks on Spectrum-4 Ethernet, every 800G NIC split over two planes",
            "docs.nvidia.com/enterprise-reference-architectures/nvl72-ai-factory: 8+4, 16+8, 32+12 switches",
            (Parameter("racks", 2, "how many NVL72 racks", (2, 4, 8)), _SHELVES),
            "nvl72:gb300_nvl72_ethernet",
            {0: (576, "the vendor's architecture ends at 8 racks; two tiers of 128 ports would reach 8,192")},
        ),
        Preset(
            "vera-rubin-spectrum6",
            "Vera Rubin NVL72 racks on Spectrum-6 switches, 1.6 Tb/s a GPU over four planes",
            "vendor Rubin and Spectrum-6 announcements; counts estimated, no reference architecture is published",
            (
                Parameter("racks", 7, "how many NVL72 racks", range(1, 7169)),
                Parameter(
                    "switch_ports", 256, "ports of a switch at 400G, 256 (SN6810) or 1024 (SN6800)", (256, 1024)
                ),
            ),
            "nvl72:vera_rubin_spectrum6",
            {0: (516_096, "two tiers of SN6800, 1,024 x 400G, in whole racks; of SN6810 32,256 (k^2/2 is 32,768)")},
        ),
        Preset(
            "mrc-8plane",
            "GB200 racks whose 800G interfaces are eight of 100G, one a plane, on 512-port switches in two tiers",
            "arXiv 2605.04333 (MRC); how GPUs are placed on leaves is estimated",
            (Parameter("racks", 8, "how many NVL72 racks", range(1, 1821)),),
            "nvl72:mrc_8plane",
            {0: (131_072, "two tiers of 512 x 100G (k^2/2)")},
        ),
        Preset(
            "deepseek-mpft",
            "DeepSeek's multi-plane fat tree: a rail is a plane, NIC i of every H800 server in plane i alone",
            "arXiv 2505.09343 (ISCA 2025), table 3",
            (Parameter("nodes", 128, "how many servers", range(1, 2049)),),
            "published:deepseek_mpft",
            {0: (16_384, "two tiers of 64 ports (k^2/2 = 2,048 a plane), eight planes of one rail each")},
        ),
        Preset(
            "alibaba-hpn",
            "Alibaba HPN: 8 NICs of 2 x 200G a server, dual ToR, dual plane, 1,024 GPUs a segment",
            "Alibaba HPN, SIGCOMM 2024; the core above a pod is left out",
            (Parameter("segments", 1, "how many segments of 128 servers", range(1, 16)),),
            "published:alibaba_hpn",
            {0: (15_360, "15 segments of 1,024 GPUs fill the 120 ports down of an aggregation switch")},
        ),
        Preset(
            "meta-24k-roce",
            "Meta's 24,576-GPU RoCE cluster: 8 pods of 3,072 H100, full bandwidth in a pod, 1:7 above",
            "Engineering at Meta, 2024; Llama 3 paper; counts of spines and cores estimated",
            (Parameter("pods", 1, "how many pods", range(1, 9)),),
            "published:meta_24k_roce",
            {0: (24_576, "8 pods of 3,072 GPUs as published")},
        ),
        Preset(
            "rtx-pro-6000",
            "RTX PRO 6000 servers with one 400G NIC a GPU on 64-port leaves, 16 servers a rack",
            "RTX PRO 6000 networking article; leaf and spine counts derived",
            (
                Parameter("servers", 16, "how many servers", range(1, 1025)),
                Parameter("gpus_per_server", 8, "GPUs in a server", (2, 4, 8)),
            ),
            "small:rtx_pro_6000",
            {0: (2048, "two tiers of 64 ports (k^2/2); one leaf alone joins 64 GPUs in one hop")},
        ),
        Preset(
            "rtx-pro-ai-factory",
            "RTX PRO AI Factory nodes: 8 GPUs, five 200G adapters, four of them for the GPUs",
            "RTX PRO 6000 against B200 guide; vendor enterprise reference architecture; counts derived",
            (Parameter("nodes", 16, "how many nodes", range(1, 1025)),),
            "small:rtx_pro_ai_factory",
            {0: (49_152, "two tiers of 256 x 200G: 64 sets of four leaves, 96 nodes each")},
        ),
        Preset(
            "dgx-station-pair",
            "Two DGX Stations with two direct 400G cables, one a rail, no switch, not bonded",
            "build.nvidia.com/playbooks/connect-two-stations; NVLink against InfiniBand guide",
            (),
            "small:dgx_station_pair",
            {0: (2, "direct cables join two")},
        ),
    )
}
