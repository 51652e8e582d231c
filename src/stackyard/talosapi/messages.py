"""The messages of the Talos API that we read or write; `base.protobuf` makes their classes.

Field numbers are those of Talos 1.12. Nearly all unary answers hold `messages`, one for each machine that was
asked, each with a `metadata` that names the machine where a request went to several.
"""

from __future__ import annotations

from typing import Any

from stackyard.base.protobuf import make_messages

__all__ = ["ENUMS", "EVENT_TYPE_PREFIX", "MESSAGES", "STAGES", "pb"]

# Talos has a prefix of its own where others write `type.googleapis.com/`.
EVENT_TYPE_PREFIX = "talos/runtime/"

# The names of the stages of a machine in the text of resources, by their number.
STAGES = (
    *("unknown", "booting", "installing", "maintenance", "running"),
    *("rebooting", "shutting down", "resetting", "upgrading"),
)

ENUMS = {
    "ApplyConfigurationRequest.Mode": "REBOOT AUTO NO_REBOOT STAGED TRY",
    "RebootRequest.Mode": "DEFAULT POWERCYCLE FORCE",
    "ResetRequest.WipeMode": "ALL SYSTEM_DISK USER_DISKS",
    "UpgradeRequest.RebootMode": "DEFAULT POWERCYCLE",
    "Disk.DiskType": "UNKNOWN SSD HDD NVME SD CD",
    "SequenceEvent.Action": "NOOP START STOP",
    "PhaseEvent.Action": "START STOP",
    "TaskEvent.Action": "START STOP",
    "ServiceStateEvent.Action": "INITIALIZED PREPARING WAITING RUNNING STOPPING"
    " FINISHED FAILED SKIPPED STARTING",
    "MachineStatusEvent.MachineStage": "UNKNOWN BOOTING INSTALLING MAINTENANCE RUNNING"
    " REBOOTING SHUTTING_DOWN RESETTING UPGRADING",
    "WatchEvent.EventType": "CREATED UPDATED DESTROYED BOOTSTRAPPED ERRORED NOOP",
    "ResourceDefinitionSpec.Sensitivity": "NON_SENSITIVE SENSITIVE",
    "LabelTerm.Operation": "EXISTS EQUAL NOT_EXISTS IN LT LTE LT_NUMERIC LTE_NUMERIC",
}

_SHARED = {
    "Empty": "",
    "Any": "1 string type_url, 2 bytes value",
    "Duration": "1 int64 seconds, 2 int32 nanos",
    "Timestamp": "1 int64 seconds, 2 int32 nanos",
    "Status": "1 int32 code, 2 string message, 3 *Any details",
    "Metadata": "1 string hostname, 2 string error, 3 Status status",
    "Data": "1 Metadata metadata, 2 bytes bytes",
}

# Fields of one machine's answer; `XResponse` with `messages` is added for each.
_ANSWERS = {
    "ApplyConfiguration": "2 *string warnings, 3 ApplyConfigurationRequest.Mode mode, 4 string mode_details",
    "Bootstrap": "",
    "Version": "2 VersionInfo version, 3 PlatformInfo platform, 4 FeaturesInfo features",
    "ServiceList": "2 *ServiceInfo services",
    "Reboot": "2 string actor_id",
    "Shutdown": "2 string actor_id",
    "Reset": "2 string actor_id",
    "Upgrade": "2 string ack, 3 string actor_id",
    "EtcdMemberList": "2 *string legacy_members, 3 *EtcdMember members",
    "EtcdStatus": "2 EtcdMemberStatus member_status",
    "EtcdRemoveMemberByID": "",
    "EtcdForfeitLeadership": "2 string member",
    "EtcdLeaveCluster": "",
    "EtcdRecover": "",
    "Memory": "2 MemInfo meminfo",
    "GenerateClientConfiguration": "2 bytes ca, 3 bytes crt, 4 bytes key, 5 bytes talosconfig",
    "Disks": "2 *Disk disks",
    "BlockDeviceWipe": "",
}

_MACHINE = {
    "ApplyConfigurationRequest": "1 bytes data, 4 ApplyConfigurationRequest.Mode mode, 5 bool dry_run,"
    " 6 Duration try_mode_timeout",
    "BootstrapRequest": "1 bool recover_etcd, 2 bool recover_skip_hash_check",
    "VersionInfo": "1 string tag, 2 string sha, 3 string built, 4 string go_version, 5 string os,"
    " 6 string arch",
    "PlatformInfo": "1 string name, 2 string mode",
    "FeaturesInfo": "1 bool rbac",
    "ServiceInfo": "1 string id, 2 string state, 3 ServiceEvents events, 4 ServiceHealth health",
    "ServiceEvents": "1 *ServiceEvent events",
    "ServiceEvent": "1 string msg, 2 string state, 3 Timestamp ts",
    "ServiceHealth": "1 bool unknown, 2 bool healthy, 3 string last_message, 4 Timestamp last_change",
    "RebootRequest": "1 RebootRequest.Mode mode",
    "ShutdownRequest": "1 bool force",
    "ResetPartitionSpec": "1 string label, 2 bool wipe",
    "ResetRequest": "1 bool graceful, 2 bool reboot, 3 *ResetPartitionSpec system_partitions_to_wipe,"
    " 4 *string user_disks_to_wipe, 5 ResetRequest.WipeMode mode",
    "UpgradeRequest": "1 string image, 2 bool preserve, 3 bool stage, 4 bool force,"
    " 5 UpgradeRequest.RebootMode reboot_mode",
    "EtcdMemberListRequest": "1 bool query_local",
    "EtcdMember": "2 uint64 id, 3 string hostname, 4 *string peer_urls, 5 *string client_urls,"
    " 6 bool is_learner",
    "EtcdMemberStatus": "1 string protocol_version, 2 int64 db_size, 3 int64 db_size_in_use, 4 uint64 leader,"
    " 5 uint64 raft_index, 6 uint64 raft_term, 7 uint64 raft_applied_index, 8 *string errors,"
    " 9 bool is_learner, 10 uint64 member_id, 11 string storage_version",
    "EtcdRemoveMemberByIDRequest": "1 uint64 member_id",
    "EtcdForfeitLeadershipRequest": "",
    "EtcdLeaveClusterRequest": "",
    "EtcdSnapshotRequest": "",
    "MemInfo": "1 uint64 memtotal, 2 uint64 memfree, 3 uint64 memavailable",
    "ReadRequest": "1 string path",
    "GenerateClientConfigurationRequest": "1 *string roles, 2 Duration crt_ttl",
}

_EVENTS = {
    "EventsRequest": "1 int32 tail_events, 2 string tail_id, 3 int32 tail_seconds, 4 string with_actor_id",
    "Event": "1 Metadata metadata, 2 Any data, 3 string id, 4 string actor_id",
    "Error": "1 int32 code, 2 string message",
    "SequenceEvent": "1 string sequence, 2 SequenceEvent.Action action, 3 Error error",
    "PhaseEvent": "1 string phase, 2 PhaseEvent.Action action",
    "TaskEvent": "1 string task, 2 TaskEvent.Action action",
    "ServiceStateEvent": "1 string service, 2 ServiceStateEvent.Action action, 3 string message,"
    " 4 ServiceHealth health",
    "UnmetCondition": "1 string name, 2 string reason",
    "MachineStatusEvent.MachineStatus": "1 bool ready, 2 *UnmetCondition unmet_conditions",
    "MachineStatusEvent": "1 MachineStatusEvent.MachineStage stage,"
    " 2 MachineStatusEvent.MachineStatus status",
    "ConfigLoadErrorEvent": "1 string error",
    "ConfigValidationErrorEvent": "1 string error",
    "AddressEvent": "1 string hostname, 2 *string addresses",
}

_OTHER_SERVICES = {
    "Disk": "1 uint64 size, 2 string model, 3 string device_name, 4 string name, 5 string serial,"
    " 6 string modalias, 7 string uuid, 8 string wwid, 9 Disk.DiskType type, 10 string bus_path,"
    " 11 bool system_disk, 12 string subsystem, 13 bool readonly",
    "BlockDeviceWipeDescriptor": "1 string device, 2 uint32 method, 3 bool skip_volume_check,"
    " 4 bool drop_partition",
    "BlockDeviceWipeRequest": "1 *BlockDeviceWipeDescriptor devices",
    "ClusterInfo": "1 *string control_plane_nodes, 2 *string worker_nodes, 3 string force_endpoint",
    "HealthCheckRequest": "1 Duration wait_timeout, 2 ClusterInfo cluster_info",
    "HealthCheckProgress": "1 Metadata metadata, 2 string message",
}

# COSI: the resources of a machine. Their specs are messages of their own, of which we write few.
_COSI = {
    "ResourceMetadata": "1 string namespace, 2 string type, 3 string id, 4 string version, 5 string owner,"
    " 6 string phase, 7 Timestamp created, 8 Timestamp updated, 9 *string finalizers, 10 %string labels,"
    " 11 %string annotations",
    "ResourceSpec": "1 bytes proto_spec, 2 string yaml_spec",
    "Resource": "1 ResourceMetadata metadata, 2 ResourceSpec spec",
    "LabelTerm": "1 string key, 2 LabelTerm.Operation op, 3 *string value, 4 bool invert",
    "LabelQuery": "1 *LabelTerm terms",
    "IdQuery": "1 string regexp",
    "GetRequest": "1 string namespace, 2 string type, 3 string id",
    "GetResponse": "1 Resource resource",
    "ListOptions": "1 *LabelQuery label_query, 2 IdQuery id_query",
    "ListRequest": "1 string namespace, 2 string type, 3 ListOptions options",
    "ListResponse": "1 Resource resource",
    "WatchOptions": "1 bool bootstrap_contents, 2 int32 tail_events, 3 *LabelQuery label_query,"
    " 4 IdQuery id_query, 5 bool aggregated, 6 |bytes start_from_bookmark, 7 bool bootstrap_bookmark",
    "WatchRequest": "1 string namespace, 2 string type, 3 |string id, 4 WatchOptions options,"
    " 5 int32 api_version",
    "WatchEvent": "1 Resource resource, 2 WatchEvent.EventType event_type, 3 Resource old, 4 string error,"
    " 5 bytes bookmark",
    "WatchResponse": "1 *WatchEvent event",
    "PrintColumn": "1 string name, 2 string json_path",
    "VolumeStatusSpec": "1 int32 phase, 2 string location, 7 string parent_location,"
    " 8 int64 partition_index, 9 uint64 size",
    "KubeletSpecSpec": "1 string image, 2 *string args, 4 string expected_nodename",
    "StaticPodStatusSpec": "1 bytes pod_status",
    "ResourceDefinitionSpec": "1 string resource_type, 2 string display_type, 3 string default_namespace,"
    " 4 *string aliases, 5 *string all_aliases, 6 *PrintColumn print_columns,"
    " 7 ResourceDefinitionSpec.Sensitivity sensitivity",
}


def _answers() -> dict[str, str]:
    found = {}
    for name, fields in _ANSWERS.items():
        found[name] = ", ".join(filter(None, ("1 Metadata metadata", fields)))
        found[f"{name}Response"] = f"1 *{name} messages"
    return found


MESSAGES = {**_SHARED, **_answers(), **_MACHINE, **_EVENTS, **_OTHER_SERVICES, **_COSI}

pb: Any = make_messages("talos", MESSAGES, ENUMS)
