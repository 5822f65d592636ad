"""The protocol buffers of a trace: of XSpace (`xplane.proto`) and HloProto (`hlo.proto`).

Only the fields that are read have a name here; a message keeps the others as they are. The numbers
do not change, so that files of older versions stay readable. What `jax.profiler.ProfileData` reads,
such as millions of events, is declared as `bytes`: it is handed on as it is in the file.
"""

from __future__ import annotations

from typing import Any

from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass

from shardnb.report.invalid_input import InvalidInput

CUT_OFF = "it is cut off, or not the profiler's: expected the protocol buffer of an XSpace"

_PACKAGE = "shardnb"
_FIELDS = {
    "XSpace": {"planes": (1, "repeated bytes")},
    "XPlane": {
        "name": (2, "string"),
        "lines": (3, "repeated XLine"),
        "event_metadata": (4, "repeated bytes"),
        "stat_metadata": (5, "repeated bytes"),
        "stats": (6, "repeated XStat"),
    },
    "XLine": {"name": (2, "string"), "timestamp_ns": (3, "int64"), "events": (4, "repeated bytes")},
    # Of `event_metadata` and `stat_metadata`, whose values have no field that means two things.
    "Entry": {"key": (1, "int64"), "value": (2, "Metadata")},
    "Metadata": {"name": (2, "string"), "stats": (5, "repeated XStat")},
    "XStat": {
        "metadata_id": (1, "int64"),
        "uint64_value": (3, "uint64"),
        "int64_value": (4, "int64"),
        "str_value": (5, "string"),
        "bytes_value": (6, "bytes"),
    },
    "HloProto": {"hlo_module": (1, "bytes")},
    "HloModuleProto": {"name": (1, "string"), "device_assignment": (15, "DeviceAssignment")},
    "DeviceAssignment": {
        "replica_count": (1, "int32"),
        "computation_count": (2, "int32"),
        "computation_devices": (3, "repeated ComputationDevice"),
    },
    "ComputationDevice": {"replica_device_ids": (1, "repeated int64")},
}


def _pool() -> DescriptorPool:
    """Return the descriptions of the messages, apart from those of others in the process."""
    file = FileDescriptorProto(name="shardnb.proto", package=_PACKAGE, syntax="proto3")
    for name, fields in _FIELDS.items():
        message = file.message_type.add(name=name)
        for field, (number, words) in fields.items():
            repeated, _, of = words.rpartition(" ")
            label = "LABEL_REPEATED" if repeated else "LABEL_OPTIONAL"
            type_ = "TYPE_MESSAGE" if of in _FIELDS else f"TYPE_{of.upper()}"
            message.field.add(
                name=field,
                number=number,
                label=FieldDescriptorProto.Label.Value(label),
                type=FieldDescriptorProto.Type.Value(type_),
                type_name=f".{_PACKAGE}.{of}" if of in _FIELDS else None,
            )
    pool = DescriptorPool()
    pool.Add(file)
    return pool


_POOL = _pool()


def _message(name: str) -> Any:
    return GetMessageClass(_POOL.FindMessageTypeByName(f"{_PACKAGE}.{name}"))


XSpace, XPlane, XLine = _message("XSpace"), _message("XPlane"), _message("XLine")
Entry = _message("Entry")
HloProto, HloModuleProto = _message("HloProto"), _message("HloModuleProto")


def parsed(message: Any, data: bytes) -> Any:
    """Return a message of a type; raises `InvalidInput` where the bytes are not one."""
    try:
        return message.FromString(data)
    except DecodeError as error:
        raise InvalidInput(CUT_OFF) from error
