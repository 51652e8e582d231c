"""The services that an engine expects beside the provider's own: those of every plugin."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tf.gen import grpc_controller_pb2 as controller_pb  # type: ignore[import-untyped]
from tf.gen import grpc_controller_pb2_grpc as controller_rpc
from tf.gen import grpc_stdio_pb2_grpc as stdio_rpc
from tf.gen import tfplugin_pb2_grpc as rpc

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from stackyard.provider.servicer import Servicer

__all__ = ["add_plugin_services"]


class _Controller(controller_rpc.GRPCControllerServicer):  # type: ignore[misc]
    async def Shutdown(self, request: Any, context: Any) -> controller_pb.Empty:  # noqa: N802
        """Answer, and continue: we end with stackyard, not with the engine."""
        return controller_pb.Empty()


class _Stdio(stdio_rpc.GRPCStdioServicer):  # type: ignore[misc]
    async def StreamStdio(self, request: Any, context: Any) -> AsyncIterator[Any]:  # noqa: N802
        """Give nothing: we have no output that the engine should show."""
        nothing: tuple[Any, ...] = ()
        for one in nothing:
            yield one


def add_plugin_services(server: Any, servicer: Servicer) -> None:
    """Let a server answer an engine."""
    rpc.add_ProviderServicer_to_server(servicer, server)
    controller_rpc.add_GRPCControllerServicer_to_server(_Controller(), server)
    stdio_rpc.add_GRPCStdioServicer_to_server(_Stdio(), server)
