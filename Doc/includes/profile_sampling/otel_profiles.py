"""Profiles for OpenTelemetry, exported over gRPC.

    exporter = Exporter('shop')
    with profile_sampling.subscribe(exporter, rate_hz=100):
        serve()
    with grpc.insecure_channel('collector.example:4317') as channel:
        ProfilesServiceStub(channel).Export(exporter.request())
"""

import threading
import time
import uuid

from opentelemetry.proto.collector.profiles.v1development \
    .profiles_service_pb2 import ExportProfilesServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue
from opentelemetry.proto.profiles.v1development import profiles_pb2 as pb

FRAME_TYPES = {'python': 'cpython', 'C': 'native', 'operator': 'native'}


class Exporter:
    """A callback for subscribe() that adds up samples of a service."""

    def __init__(self, service, rate_hz=1000):
        self._service = service
        self._period_ns = 1_000_000_000 // rate_hz
        self._lock = threading.RLock()
        self._start_ns, self._sums = time.time_ns(), {}

    def __call__(self, batch):
        with self._lock:
            for sample in batch:
                sums = self._sums.setdefault(
                    sample.key, {'sample': sample, 'wall': 0, 'cpu': 0})
                sums['wall'] += sample.wall_ns
                sums['cpu'] += sample.cpu_ns

    def request(self):
        """Return the request with what came in since the last one, as a
        profile per clock: the values of a profile are of one type."""
        tables = Tables()
        request = ExportProfilesServiceRequest()
        resource = request.resource_profiles.add()
        resource.resource.attributes.add(
            key='service.name').value.string_value = self._service
        scope = resource.scope_profiles.add()
        scope.scope.name = 'profile_sampling'
        with self._lock:
            start_ns, self._start_ns = self._start_ns, time.time_ns()
            all_sums, self._sums = self._sums.values(), {}
        for clock in ('wall', 'cpu'):
            scope.profiles.append(pb.Profile(
                sample_type=tables.value_type(clock),
                samples=tables.samples(all_sums, clock),
                time_unix_nano=start_ns,
                duration_nano=self._start_ns - start_ns,
                period_type=tables.value_type(clock),
                period=self._period_ns,
                profile_id=uuid.uuid4().bytes))
        request.dictionary.CopyFrom(tables.dictionary())
        return request


class Tables:
    """The dictionary of a request: all that samples refer to by number.

    Row 0 of each table is a zero value, and stands for "none"; no two rows
    of a table are equal.
    """

    def __init__(self):
        self._strings = {'': 0}
        self._rows = {type_: {type_().SerializeToString(): 0}
                      for type_ in (pb.Mapping, pb.Link, pb.Function,
                                    pb.Location, pb.Stack,
                                    pb.KeyValueAndUnit)}

    def dictionary(self):
        rows = {type_: [type_.FromString(data) for data in numbers]
                for type_, numbers in self._rows.items()}
        return pb.ProfilesDictionary(
            mapping_table=rows[pb.Mapping], link_table=rows[pb.Link],
            function_table=rows[pb.Function],
            location_table=rows[pb.Location], stack_table=rows[pb.Stack],
            attribute_table=rows[pb.KeyValueAndUnit],
            string_table=list(self._strings))

    def samples(self, all_sums, clock):
        """Add up to one Sample per stack and set of attributes."""
        values = {}
        for sums in all_sums:
            if sums[clock]:
                sample = sums['sample']
                key = self._stack(sample.stack), self._attributes(sample)
                values[key] = values.get(key, 0) + sums[clock]
        return [pb.Sample(stack_index=stack, attribute_indices=attributes,
                          values=[value])
                for (stack, attributes), value in values.items()]

    def value_type(self, clock):
        return pb.ValueType(type_strindex=self._string(clock),
                            unit_strindex=self._string('nanoseconds'))

    def _string(self, text):
        return self._strings.setdefault(encodable(text), len(self._strings))

    def _row(self, message):
        rows = self._rows[type(message)]
        return rows.setdefault(
            message.SerializeToString(deterministic=True), len(rows))

    def _attribute(self, key, value):
        value = (AnyValue(int_value=value) if isinstance(value, int)
                 else AnyValue(string_value=encodable(value)))
        return self._row(pb.KeyValueAndUnit(key_strindex=self._string(key),
                                            value=value))

    def _attributes(self, sample):
        attributes = {**sample.labels,
                      'thread.id': sample.thread.ident,
                      'thread.name': sample.thread.name,
                      'thread.state': sample.state,
                      'asyncio.task.name': sample.task_name}
        return tuple(sorted([self._attribute(key, value)
                             for key, value in attributes.items()
                             if value is not None]))

    def _stack(self, frames):
        return self._row(pb.Stack(
            location_indices=[self._location(frame) for frame in frames]))

    def _location(self, frame):
        function = frame.function
        location = pb.Location()
        location.lines.add(
            function_index=self._row(pb.Function(
                name_strindex=self._string(function.name),
                filename_strindex=self._string(function.filename),
                start_line=function.first_line)),
            line=frame.line, column=frame.column)
        if function.kind in FRAME_TYPES:
            location.attribute_indices.append(self._attribute(
                'profile.frame.type', FRAME_TYPES[function.kind]))
        return self._row(location)


def encodable(text):
    return text.encode('utf-8', 'backslashreplace').decode()
