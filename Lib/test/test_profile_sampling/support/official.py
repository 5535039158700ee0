"""The pprof schema for the official protobuf package, made at run time.

The field numbers come from validator.SCHEMA; the decoding is the package's.
"""

from .validator import SCHEMA

try:
    from google.protobuf import descriptor_pb2, descriptor_pool
    from google.protobuf import message_factory
except ImportError:
    descriptor_pb2 = None

WHY_SKIPPED = 'the protobuf package is not installed'


def profile_class():
    """Return the package's class for a Profile message."""
    field_type = descriptor_pb2.FieldDescriptorProto
    scalar = {'string': field_type.TYPE_INT64,
              'number': field_type.TYPE_INT64,
              'bytes': field_type.TYPE_STRING}
    # Where the official schema has another type than a signed number.
    unsigned = {'id', 'mapping_id', 'function_id', 'location_id', 'address',
                'memory_start', 'memory_limit', 'file_offset'}
    file = descriptor_pb2.FileDescriptorProto(
        name='pprof_for_tests.proto', package='pprof_for_tests',
        syntax='proto3')
    for message_name, fields in SCHEMA.items():
        message = file.message_type.add(name=message_name)
        for number, (name, repeated, kind) in fields.items():
            field = message.field.add(name=name, number=number)
            field.label = (field_type.LABEL_REPEATED if repeated
                           else field_type.LABEL_OPTIONAL)
            if kind in SCHEMA:
                field.type = field_type.TYPE_MESSAGE
                field.type_name = f'.{file.package}.{kind}'
            elif name in unsigned:
                field.type = field_type.TYPE_UINT64
            elif name.startswith('has_') or name == 'is_folded':
                field.type = field_type.TYPE_BOOL
            else:
                field.type = scalar[kind]
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(
        pool.FindMessageTypeByName(f'{file.package}.Profile'))
