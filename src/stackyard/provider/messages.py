"""The messages of the plugin protocol that we read or write; `base.protobuf` makes their classes."""

from __future__ import annotations

from typing import Any

from stackyard.base.protobuf import make_messages

__all__ = ["ENUMS", "MESSAGES", "PACKAGE", "pb"]

PACKAGE = "tfplugin6"

# The values of each, from 0 on.
ENUMS = {
    "Diagnostic.Severity": "INVALID ERROR WARNING",
    "Schema.NestedBlock.NestingMode": "INVALID SINGLE LIST SET MAP GROUP",
    "Schema.Object.NestingMode": "INVALID SINGLE LIST SET MAP",
}

# The fields of each, as `make_messages` reads them.
MESSAGES = {
    "DynamicValue": "1 bytes msgpack, 2 bytes json",
    "AttributePath.Step": "1 |string attribute_name, 2 |string element_key_string, 3 |int64 element_key_int",
    "AttributePath": "1 *AttributePath.Step steps",
    "Diagnostic": "1 Diagnostic.Severity severity, 2 string summary, 3 string detail,"
    " 4 AttributePath attribute",
    "FunctionError": "1 string text",
    "RawState": "1 bytes json",
    "Schema": "1 int64 version, 2 Schema.Block block",
    "Schema.Block": "2 *Schema.Attribute attributes, 3 *Schema.NestedBlock block_types, 6 bool deprecated",
    "Schema.Attribute": "1 string name, 2 bytes type, 4 bool required, 5 bool optional, 6 bool computed,"
    " 7 bool sensitive, 9 bool deprecated, 10 Schema.Object nested_type, 11 bool write_only",
    "Schema.NestedBlock": "1 string type_name, 2 Schema.Block block,"
    " 3 Schema.NestedBlock.NestingMode nesting,"
    " 4 int64 min_items, 5 int64 max_items",
    "Schema.Object": "1 *Schema.Attribute attributes, 3 Schema.Object.NestingMode nesting",
    "ServerCapabilities": "1 bool plan_destroy, 2 bool get_provider_schema_optional,"
    " 3 bool move_resource_state",
    "GetMetadata.Request": "",
    "GetMetadata.ResourceMetadata": "1 string type_name",
    "GetMetadata.DataSourceMetadata": "1 string type_name",
    "GetMetadata.Response": "1 ServerCapabilities server_capabilities,"
    " 3 *GetMetadata.DataSourceMetadata data_sources, 4 *GetMetadata.ResourceMetadata resources",
    "GetProviderSchema.Request": "",
    "GetProviderSchema.Response": "1 Schema provider, 2 %Schema resource_schemas,"
    " 3 %Schema data_source_schemas,"
    " 6 ServerCapabilities server_capabilities",
    "ValidateProviderConfig.Request": "1 DynamicValue config",
    "ValidateProviderConfig.Response": "2 *Diagnostic diagnostics",
    "ConfigureProvider.Request": "1 string terraform_version, 2 DynamicValue config",
    "ConfigureProvider.Response": "1 *Diagnostic diagnostics",
    "ValidateResourceConfig.Request": "1 string type_name, 2 DynamicValue config",
    "ValidateResourceConfig.Response": "1 *Diagnostic diagnostics",
    "ValidateDataResourceConfig.Request": "1 string type_name, 2 DynamicValue config",
    "ValidateDataResourceConfig.Response": "1 *Diagnostic diagnostics",
    "UpgradeResourceState.Request": "1 string type_name, 2 int64 version, 3 RawState raw_state",
    "UpgradeResourceState.Response": "1 DynamicValue upgraded_state, 2 *Diagnostic diagnostics",
    "ReadResource.Request": "1 string type_name, 2 DynamicValue current_state, 3 bytes private",
    "ReadResource.Response": "1 DynamicValue new_state, 2 *Diagnostic diagnostics, 3 bytes private",
    "PlanResourceChange.Request": "1 string type_name, 2 DynamicValue prior_state,"
    " 3 DynamicValue proposed_new_state, 4 DynamicValue config, 5 bytes prior_private",
    "PlanResourceChange.Response": "1 DynamicValue planned_state, 2 *AttributePath requires_replace,"
    " 3 bytes planned_private, 4 *Diagnostic diagnostics, 5 bool legacy_type_system",
    "ApplyResourceChange.Request": "1 string type_name, 2 DynamicValue prior_state,"
    " 3 DynamicValue planned_state,"
    " 4 DynamicValue config, 5 bytes planned_private",
    "ApplyResourceChange.Response": "1 DynamicValue new_state, 2 bytes private, 3 *Diagnostic diagnostics,"
    " 4 bool legacy_type_system",
    "ImportResourceState.Request": "1 string type_name, 2 string id",
    "ImportResourceState.ImportedResource": "1 string type_name, 2 DynamicValue state, 3 bytes private",
    "ImportResourceState.Response": "1 *ImportResourceState.ImportedResource imported_resources,"
    " 2 *Diagnostic diagnostics",
    "MoveResourceState.Request": "1 string source_provider_address, 2 string source_type_name,"
    " 3 int64 source_schema_version, 4 RawState source_state, 5 string target_type_name,"
    " 6 bytes source_private",
    "MoveResourceState.Response": "1 DynamicValue target_state, 2 *Diagnostic diagnostics,"
    " 3 bytes target_private",
    "ReadDataSource.Request": "1 string type_name, 2 DynamicValue config",
    "ReadDataSource.Response": "1 DynamicValue state, 2 *Diagnostic diagnostics",
    "GetFunctions.Request": "",
    "GetFunctions.Response": "",
    "CallFunction.Request": "1 string name, 2 *DynamicValue arguments",
    "CallFunction.Response": "1 DynamicValue result, 2 FunctionError error",
    "StopProvider.Request": "",
    "StopProvider.Response": "1 string Error",
    # A message without fields, of the services that every plugin has.
    "Empty": "",
}

pb: Any = make_messages(PACKAGE, MESSAGES, ENUMS)
