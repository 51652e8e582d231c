"""Templates of users are rendered in a process that can neither run for ever nor fill the memory."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from tests.support.resolved_clusters import make_cluster

from stackyard.path.clusters.bounded_templates import bounded_templates
from stackyard.render.cluster import TemplateFile, render_infrastructure, render_secrets
from stackyard.render.cluster.sandbox import TemplateError

CLUSTER = make_cluster(Path("/srv/cluster"))
_FOR_EVER = (
    "#% for a in range(99999) %##% for b in range(99999) %##% for c in range(99999) %#"
    "#% endfor %##% endfor %##% endfor %#"
)
_DOUBLING = (
    "#% set found = namespace(text='x' ~ cluster_name) %#"
    "#% for step in range(60) %##% set found.text = found.text ~ found.text %##% endfor %#"
)


def render(text: str, *, timeout_s: float = 30.0, name: str = "tofu/extra.tf.j2") -> dict[str, bytes]:
    overrides = {name: TemplateFile(path=f"templates/{name}", text=text)}
    with bounded_templates(timeout_s=timeout_s) as render_own:
        return {
            **render_infrastructure(CLUSTER, overrides=overrides, render_own=render_own),
            **render_secrets(CLUSTER, overrides=overrides, render_own=render_own),
        }


def test_a_template_gives_what_it_gives_without_bounds() -> None:
    text = "#% for node in nodes %##{ node.name }# #{ talos_images | length }# #{ state.url }#\n#% endfor %#"
    without = render_infrastructure(CLUSTER, overrides={"a.tf.j2": TemplateFile(path="a", text=text)})
    assert render(text, name="a.tf.j2")["a.tf"] == without["a.tf"]
    secret = render("who: #{ tfstate_username | yaml }#\n", name="own.sops.yaml.j2")
    assert secret["own.sops.yaml"] == b'who: "terraform"\n'


def test_a_mistake_keeps_its_line() -> None:
    with pytest.raises(TemplateError, match="'proxmox_nod' is undefined") as caught:
        render("fine\n#{ proxmox_nod }#\n")
    assert caught.value.where is not None
    assert (caught.value.where.path, caught.value.where.line) == ("templates/tofu/extra.tf.j2", 2)


def test_a_loop_without_end_is_ended() -> None:
    began = time.monotonic()
    with pytest.raises(TemplateError, match="longer than 3 s") as caught:
        render(_FOR_EVER, timeout_s=3.0)
    assert time.monotonic() - began < 15
    assert caught.value.where is not None
    assert caught.value.where.path == "templates/tofu/extra.tf.j2"


@pytest.mark.parametrize("text", [_DOUBLING, "#{ 'x' | center(4000000000) }#", "#{ '%4000000000d' % 1 }#"])
def test_a_text_that_fills_the_memory_is_refused(text: str) -> None:
    with pytest.raises(TemplateError, match=r"more memory|more than 512 MiB") as caught:
        render(text)
    assert caught.value.where is not None
    assert caught.value.where.path == "templates/tofu/extra.tf.j2"
