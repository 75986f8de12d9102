# SPDX-License-Identifier: BSD-3-Clause
"""coll/rust, from the tarball of `make dist-vendor` in the current folder."""

import os

from spack_repo.builtin.build_systems.autotools import AutotoolsPackage

from spack.package import *


class CollRust(AutotoolsPackage):
    """Topology-aware hierarchical collectives for Open MPI, as one component,
    and mpiperf, which measures the collectives of any MPI library."""

    homepage = "https://coll-rust.invalid"
    url = f"file://{os.getcwd()}/coll-rust-0.2.0-vendored.tar.gz"

    license("BSD-3-Clause")

    version("0.2.0")

    depends_on("c", type="build")
    depends_on("gmake", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("rust@1.88:", type="build")
    # bindgen loads libclang.
    depends_on("llvm+clang", type="build")
    depends_on("hwloc")
    depends_on("openmpi@4.1:5")

    def url_for_version(self, version):
        # Of the address above, Spack would leave out "-vendored".
        return f"file://{os.getcwd()}/coll-rust-{version}-vendored.tar.gz"

    def setup_build_environment(self, env: EnvironmentModifications) -> None:
        env.set("LIBCLANG_PATH", self.spec["llvm"].prefix.lib)

    def configure_args(self):
        return [
            f"MPICC={self.spec['openmpi'].prefix.bin.mpicc}",
            # The folder of Open MPI's own package stays as it is.
            f"--with-component-dir={self.prefix.lib.openmpi}",
        ]

    def check(self):
        make("check-job")

    def setup_run_environment(self, env: EnvironmentModifications) -> None:
        name = "mca_base_component_path"
        if self.spec.satisfies("^openmpi@5:"):
            # Counts more, and is no name of PMIx's.
            name = f"opal_{name}"
        env.set(f"OMPI_MCA_{name}", f"{self.prefix.lib.openmpi}:SYS_DEFAULT:USER_DEFAULT")
