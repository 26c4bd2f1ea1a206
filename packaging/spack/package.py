# SPDX-License-Identifier: BSD-3-Clause
# ruff: noqa: F403, F405
"""The programs in C for Spack: `spack repo create`, this file as packages/switchbench/package.py,
then `spack dev-build -d SOURCE switchbench@main`. pip installs the command beside it: Spack has no
pyroute2 (doc/how-to/install.md)."""

from spack.package import *


class Switchbench(MesonPackage):
    """Network benchmark that loads every port at once, in traffic matrices with one window."""

    license("BSD-3-Clause")
    version("main", branch="main")

    variant("dpdk", default=True, description="raw Ethernet frames and UDP through DPDK")
    variant("verbs", default=True, description="RDMA through libibverbs")

    depends_on("c", type="build")
    depends_on("meson@1:", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("jansson")
    depends_on("libmnl")
    depends_on("libsodium")
    depends_on("dpdk@22.11:", when="+dpdk")
    depends_on("rdma-core", when="+verbs")

    def meson_args(self):
        options = [
            f"-D{name}={'enabled' if self.spec.satisfies('+' + name) else 'disabled'}"
            for name in ("dpdk", "verbs")
        ]
        return [*options, "-Dtests=false"]
