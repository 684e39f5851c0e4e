"""Pages of made-up BMCs, in the shapes that makers give them; every value is this file's own."""

from __future__ import annotations

from typing import Any

Page = dict[str, Any]
Pages = dict[str, Page]

ROOT = "/redfish/v1"
OK = {"State": "Enabled", "Health": "OK"}


def to(path: str) -> Page:
    return {"@odata.id": path}


def collection(*paths: str) -> Page:
    return {"Members": [to(path) for path in paths], "Members@odata.count": len(paths)}


def service(*chassis: str) -> Pages:
    """A root and its chassis collection."""
    listed = f"{ROOT}/Chassis"
    return {ROOT: {"Chassis": to(listed)}, listed: collection(*(f"{listed}/{name}" for name in chassis))}


def newer(chassis: str, ids: list[str], *, watts: float = 3300, metrics: bool = True) -> Pages:
    """PowerSubsystem with pages for each supply: supply k takes 1000.5 + k W and gives 900.25 + k W."""
    here = f"{ROOT}/Chassis/{chassis}/PowerSubsystem"
    pages = {
        here: {"PowerSupplies": to(f"{here}/PowerSupplies")},
        f"{here}/PowerSupplies": collection(*(f"{here}/PowerSupplies/{i}" for i in ids)),
    }
    for k, name in enumerate(ids):
        path = f"{here}/PowerSupplies/{name}"
        pages[path] = {"Id": name, "Status": dict(OK), "PowerCapacityWatts": watts, "LineInputStatus": "Normal"}
        if metrics:
            pages[path]["Metrics"] = to(f"{path}/Metrics")
            pages[f"{path}/Metrics"] = {
                "InputPowerWatts": {"Reading": 1000.5 + k},
                "OutputPowerWatts": {"Reading": 900.25 + k},
            }
    return pages


def hgx(supplies: int = 6) -> Pages:
    """An NVIDIA HGX host: its own chassis, and the GPU baseboard's with power of its own and no supplies."""
    box, board, gpu = (f"{ROOT}/Chassis/{n}" for n in ("Host_0", "HGX_Chassis_0", "HGX_GPU_0"))
    pages = service("HGX_Chassis_0", "HGX_GPU_0", "CPLD_0", "Host_0")
    pages |= newer("Host_0", [f"PSU{i}" for i in range(supplies)])
    for path, kind, watts in ((box, "RackMount", 6100.75), (board, "Zone", 4321.0), (gpu, "Module", 700.0)):
        pages[path] = {
            "ChassisType": kind,
            "EnvironmentMetrics": to(f"{path}/EnvironmentMetrics"),
            "PowerSubsystem": to(f"{path}/PowerSubsystem"),
        }
        pages[f"{path}/EnvironmentMetrics"] = {"PowerWatts": {"Reading": watts}}
    pages[f"{ROOT}/Chassis/CPLD_0"] = {"ChassisType": "Module"}
    return pages


def supermicro(supplies: int = 4) -> Pages:
    """One Power page that lists everything, bays counted from 1, the members from 0."""
    chassis = f"{ROOT}/Chassis/1"
    return service("1") | {
        chassis: {"ChassisType": "RackMount", "Power": to(f"{chassis}/Power")},
        f"{chassis}/Power": {
            "PowerControl": [
                {"PowerConsumedWatts": 2161},
                {"Name": "CPU Sub-system Power", "PowerConsumedWatts": 300},
            ],
            "PowerSupplies": [
                {
                    "MemberId": str(i),
                    "Name": f"Power Supply Bay {i + 1}",
                    "Status": dict(OK),
                    "PowerInputWatts": 550 + i,
                    "PowerOutputWatts": 500 + i,
                    "PowerCapacityWatts": 3000,
                }
                for i in range(supplies)
            ],
            "Redundancy": [{"Mode": "N+m", "MinNumNeeded": 2, "MaxNumSupported": supplies}],
        },
    }


def liteon_shelf() -> Pages:
    """A 33 kW shelf after LITE-ON's habit: supplies 0 to 5, rated in text, their power in sensors `p0_pin`."""
    chassis = f"{ROOT}/Chassis/powershelf"
    pages = service("powershelf") | newer("powershelf", [str(i) for i in range(6)], metrics=False)
    pages[chassis] = {
        "ChassisType": "Shelf",
        "PowerSubsystem": to(f"{chassis}/PowerSubsystem"),
        "Sensors": to(f"{chassis}/Sensors"),
    }
    names = [f"p{i}_{what}" for i in range(6) for what in ("pin", "pout", "vin")]
    pages[f"{chassis}/Sensors"] = collection(*(f"{chassis}/Sensors/{n}" for n in names))
    for i in range(6):
        supply = pages[f"{chassis}/PowerSubsystem/PowerSupplies/{i}"]
        del supply["PowerCapacityWatts"]
        supply |= {"CapacityWatts": "5500", "PowerState": True}
        for what, value in (("pin", 2600.5 + i), ("pout", 2500.25 + i), ("vin", 240.0)):
            pages[f"{chassis}/Sensors/p{i}_{what}"] = {"Id": f"p{i}_{what}", "Reading": value, "Status": dict(OK)}
    return pages


def ocp_shelves(shelves: int = 2) -> Pages:
    """Power equipment by the OCP profile: shelves of six supplies, found by their chassis, with a total each."""
    equipment = f"{ROOT}/PowerEquipment"
    pages = service(*(f"Shelf{s}" for s in range(1, shelves + 1)))
    pages[ROOT]["PowerEquipment"] = to(equipment)
    pages[equipment] = {"PowerShelves": to(f"{equipment}/PowerShelves")}
    pages[f"{equipment}/PowerShelves"] = collection(*(f"{equipment}/PowerShelves/{s}" for s in range(1, shelves + 1)))
    for s in range(1, shelves + 1):
        chassis, shelf = f"{ROOT}/Chassis/Shelf{s}", f"{equipment}/PowerShelves/{s}"
        pages |= newer(f"Shelf{s}", [str(i) for i in range(1, 7)], watts=5500)
        pages[chassis] = {"ChassisType": "Shelf", "PowerSubsystem": to(f"{chassis}/PowerSubsystem")}
        pages[shelf] = {
            "EquipmentType": "PowerShelf", "Metrics": to(f"{shelf}/Metrics"), "Links": {"Chassis": [to(chassis)]},
        }  # fmt: skip
        pages[f"{shelf}/Metrics"] = {"PowerWatts": {"Reading": 6438.5}}
    return pages
