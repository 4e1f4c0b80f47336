"""Support vector machines with any Mercer kernel, by factorisation of its Gram matrix."""

from slayr_py.svm.cross_validation import cross_validate
from slayr_py.svm.factorization import KernelFactorization
from slayr_py.svm.gp_kernel import GPKernel
from slayr_py.svm.graph_kernels import Diffusion, GraphKernel, InverseCosine, RandomWalk, RegularizedLaplacian
from slayr_py.svm.kernel_function import KernelFunction
from slayr_py.svm.kernel_names import from_name, names
from slayr_py.svm.machines import KernelNuSVR, KernelSVC, KernelSVR
from slayr_py.svm.p_norm import PNormSVR
from slayr_py.svm.precomputed import Precomputed
from slayr_py.svm.pretraining import Pretraining, pretrain
from slayr_py.svm.vector_kernels import RBF, Laplacian, Linear, Matern, Polynomial

__all__ = [
    "Diffusion",
    "GPKernel",
    "GraphKernel",
    "InverseCosine",
    "KernelFactorization",
    "KernelFunction",
    "KernelNuSVR",
    "KernelSVC",
    "KernelSVR",
    "Laplacian",
    "Linear",
    "Matern",
    "PNormSVR",
    "Polynomial",
    "Pretraining",
    "Precomputed",
    "RBF",
    "RandomWalk",
    "RegularizedLaplacian",
    "cross_validate",
    "from_name",
    "names",
    "pretrain",
]
