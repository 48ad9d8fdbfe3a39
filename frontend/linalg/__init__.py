"""Linear algebra as the array API's `linalg` extension has it, for real dtypes; batched over the leading axes.

The factorisations are written with the same functions as everything else, loops included, so they run eagerly,
natively, and in exported ONNX models. Those with a rotation schedule (`eigh`, `svd` and what stands on them) need the
matrices' extents as numbers.
"""

from sardonyx.frontend.functions.linalg import (
    det as det,
    matmul as matmul,
    matrix_transpose as matrix_transpose,
    outer as outer,
    tensordot as tensordot,
    vecdot as vecdot,
)
from sardonyx.frontend.linalg.factorizations import (
    QRResult as QRResult,
    SlogdetResult as SlogdetResult,
    cholesky as cholesky,
    inv as inv,
    qr as qr,
    slogdet as slogdet,
    solve as solve,
)
from sardonyx.frontend.linalg.norms import (
    cross as cross,
    diagonal as diagonal,
    matrix_norm as matrix_norm,
    matrix_power as matrix_power,
    matrix_rank as matrix_rank,
    pinv as pinv,
    trace as trace,
    vector_norm as vector_norm,
)
from sardonyx.frontend.linalg.spectra import (
    EighResult as EighResult,
    SVDResult as SVDResult,
    eigh as eigh,
    eigvalsh as eigvalsh,
    svd as svd,
    svdvals as svdvals,
)

__all__ = [
    "cholesky", "cross", "det", "diagonal", "eigh", "eigvalsh", "inv", "matmul", "matrix_norm", "matrix_power",
    "matrix_rank", "matrix_transpose", "outer", "pinv", "qr", "slogdet", "solve", "svd", "svdvals", "tensordot",
    "trace", "vecdot", "vector_norm",
]  # fmt: skip
