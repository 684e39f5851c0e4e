"""The messages of gNMI that a subscriber needs, as protobuf classes made at run time.

Names and numbers of fields are those of gnmi.proto (github.com/openconfig/gnmi, version 0.10). Fields that are left
out here are skipped when a message is read. The classes live in a pool of their own, so that another
library's gNMI messages in the same process are no conflict. An enumeration is an int32 here, which is the same on
the wire.
"""

from __future__ import annotations

from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory  # type: ignore[import-untyped]
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]

SUBSCRIBE = "/gnmi.gNMI/Subscribe"
CAPABILITIES = "/gnmi.gNMI/Capabilities"

JSON, PROTO, JSON_IETF = 0, 2, 4  # Encoding
ON_CHANGE, SAMPLE = 1, 2  # SubscriptionMode; the mode of a SubscriptionList is 0, STREAM

_PACKAGE = "gnmi"
# message -> field -> number and type; `*` is repeated, `map` is a map of strings to strings
_FIELDS: dict[str, dict[str, tuple[int, str]]] = {
    "PathElem": {"name": (1, "string"), "key": (2, "map")},
    "Path": {"origin": (2, "string"), "elem": (3, "PathElem*"), "target": (4, "string")},
    "Decimal64": {"digits": (1, "int64"), "precision": (2, "uint32")},
    "ScalarArray": {"element": (1, "TypedValue*")},
    "TypedValue": {
        "string_val": (1, "string"), "int_val": (2, "int64"), "uint_val": (3, "uint64"), "bool_val": (4, "bool"),
        "bytes_val": (5, "bytes"), "float_val": (6, "float"), "decimal_val": (7, "Decimal64"),
        "leaflist_val": (8, "ScalarArray"), "json_val": (10, "bytes"), "json_ietf_val": (11, "bytes"),
        "ascii_val": (12, "string"), "proto_bytes": (13, "bytes"), "double_val": (14, "double"),
    },
    "Update": {"path": (1, "Path"), "val": (3, "TypedValue")},
    "Notification": {
        "timestamp": (1, "int64"), "prefix": (2, "Path"), "update": (4, "Update*"), "delete": (5, "Path*"),
        "atomic": (6, "bool"),
    },
    "Subscription": {"path": (1, "Path"), "mode": (2, "int32"), "sample_interval": (3, "uint64")},
    "SubscriptionList": {
        "prefix": (1, "Path"), "subscription": (2, "Subscription*"), "mode": (5, "int32"), "encoding": (8, "int32"),
    },
    "SubscribeRequest": {"subscribe": (1, "SubscriptionList")},
    "SubscribeResponse": {"update": (1, "Notification"), "sync_response": (3, "bool")},
    "CapabilityRequest": {},
    "CapabilityResponse": {"supported_encodings": (2, "int32*"), "gNMI_version": (3, "string")},
}  # fmt: skip
_ONEOF = {"TypedValue": "value", "SubscribeRequest": "request", "SubscribeResponse": "response"}


def _described() -> Any:
    """All messages as a file descriptor."""
    scalar = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="fabrictwin/gnmi.proto", package=_PACKAGE, syntax="proto3")
    for name, fields in _FIELDS.items():
        message = file.message_type.add(name=name)
        if name in _ONEOF:
            message.oneof_decl.add(name=_ONEOF[name])
        for field, (number, kind) in fields.items():
            added = message.field.add(name=field, number=number, label=scalar.LABEL_OPTIONAL)
            if name in _ONEOF:
                added.oneof_index = 0
            if kind == "map":
                entry = message.nested_type.add(name=field.capitalize() + "Entry")
                entry.options.map_entry = True
                for n, part in enumerate(("key", "value"), start=1):
                    entry.field.add(name=part, number=n, label=scalar.LABEL_OPTIONAL, type=scalar.TYPE_STRING)
                kind = f"{name}.{entry.name}*"
            if kind.endswith("*"):
                added.label, kind = scalar.LABEL_REPEATED, kind[:-1]
            if kind[0].isupper():
                added.type, added.type_name = scalar.TYPE_MESSAGE, f".{_PACKAGE}.{kind}"
            else:
                added.type = getattr(scalar, f"TYPE_{kind.upper()}")
    return file


_pool = descriptor_pool.DescriptorPool()
_pool.Add(_described())

Unreadable = DecodeError  # what FromString raises


def _message(name: str) -> Any:
    return message_factory.GetMessageClass(_pool.FindMessageTypeByName(f"{_PACKAGE}.{name}"))


Path = _message("Path")
TypedValue = _message("TypedValue")
Notification = _message("Notification")
Subscription = _message("Subscription")
SubscriptionList = _message("SubscriptionList")
SubscribeRequest = _message("SubscribeRequest")
SubscribeResponse = _message("SubscribeResponse")
CapabilityRequest = _message("CapabilityRequest")
CapabilityResponse = _message("CapabilityResponse")
