"""Fourier transforms: `sx.dft`, `sx.stft`; filter banks on the mel scale: `sx.mel_weight_matrix`.

A complex number is two elements along the last axis, a real one is one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, opt_operand_def, opt_prop_def, result_def

from sardonyx.dialects.attributes import dims_of, fresh_dim, rank_of, tensor_type, unranked_type
from sardonyx.dialects.base import SEGMENTS, OnnxForm, SxOp
from sardonyx.dialects.dims import Dim, Proof, equal, less_equal
from sardonyx.dialects.dtypes import FLOATS, NUMERIC, DType, float32, int32, int64
from sardonyx.dialects.evaluate import Array, EvalContext
from sardonyx.dialects.sx.extents import check_allocation, check_run_allocation, merge, refuse, slots
from sardonyx.dialects.sx.numeric import convert, double, narrow
from sardonyx.dialects.sx.support import check_dtype, format_dims, is_unranked, normalize_axis
from sardonyx.dialects.values import contents, known_ints
from sardonyx.errors import InvalidArgumentError


def check_scalar(op: SxOp, value: SSAValue | None, dtypes: Sequence[DType], constraint: str, what: str) -> Dim | None:
    """The number that an operand of one element holds, None where it is not known or absent.

    Raises:
        InferenceError: Its dtype is none of `dtypes`, or it has not one element.
    """
    if value is None:
        return None
    check_dtype(op, value, dtypes, constraint, what)
    if not is_unranked(value) and equal(Dim.product(dims_of(value)), 1) is Proof.REFUTED:
        raise op.fail(f"{constraint} {what} has shape {format_dims(dims_of(value))}, not one element")
    known = contents(value)
    return known[0] if known else None


def run_scalar(op: SxOp, array: Array | None, what: str) -> int | None:
    """The number of a run; raises ExecutionError where there is not one."""
    if array is None:
        return None
    if array.size != 1:
        raise refuse(op, f"{what} has {array.size} elements, not one")
    return int(array.reshape(-1)[0])


def as_complex(x: Array) -> Array:
    """The complex numbers of the last axis: of float32 in single, else in double precision.

    NumPy's transform is as precise as its operand. Sums of float32 that cancel then leave what they leave in ONNX's own
    test data, which were made with it, and not a smaller rest.
    """
    parts = x if x.dtype == np.float32 else double(x)
    out = np.zeros(x.shape[:-1], np.complex64 if parts.dtype == np.float32 else np.complex128)
    out.real = parts[..., 0]
    if x.shape[-1] == 2:
        out.imag = parts[..., 1]
    return out


def as_pairs(z: Array) -> Array:
    return np.stack([z.real, z.imag], -1)


@irdl_op_definition
class DFTOp(SxOp):
    """The discrete Fourier transform along `axis` of real [..., 1] or complex [..., 2] numbers; a complex result.

    The signal is cut or filled with zeros to `dft_length`. `inverse` divides by it. `onesided` gives the first half
    (`length / 2 + 1` values) of the spectrum of a real signal, and with `inverse` takes such a half and gives a real
    signal [..., 1], of `2 * (extent - 1)` elements without `dft_length`. In float64, rounded once.

    (C1) The dtype is one of `DTYPES`; `dft_length` is one int32 or int64 number, `axis` one int64. (C2) The rank is at
    least 2, and the last extent 1 or 2. (C3) `axis` is in [-rank, rank) and not the last one. (C4) `dft_length` is
    positive. (C5) `onesided` takes real numbers, and with `inverse` complex ones.
    """

    name = "sx.dft"
    input = operand_def()
    dft_length = opt_operand_def()
    axis = opt_operand_def()
    inverse = opt_prop_def(IntegerAttr)
    onesided = opt_prop_def(IntegerAttr)
    output = result_def()
    irdl_options = SEGMENTS
    ONNX: ClassVar = OnnxForm("DFT", since=17)
    DEFAULTS: ClassVar = {"inverse": False, "onesided": False}
    DTYPES: ClassVar[Sequence[DType]] = FLOATS

    def infer(self) -> Sequence[Attribute]:
        dtype = check_dtype(self, self.input, self.DTYPES, "(C1)")
        length = check_scalar(self, self.dft_length, (int32, int64), "(C1)", "dft_length")
        check_scalar(self, self.axis, (int64,), "(C1)", "axis")
        if length is not None and less_equal(1, length) is Proof.REFUTED:
            raise self.fail(f"(C4) dft_length is {length}")
        if is_unranked(self.input):
            return [unranked_type(dtype)]
        dims = list(dims_of(self.input))
        if len(dims) < 2:
            raise self.fail(f"(C2) the operand has rank {len(dims)}, less than 2")
        last = dims[-1].static_value
        if last not in (None, 1, 2):
            raise self.fail(f"(C2) the last extent is {last}, not 1 or 2")
        inverse, onesided = self.attr("inverse"), self.attr("onesided")
        if onesided and last == (1 if inverse else 2):
            raise self.fail(f"(C5) a one-sided transform of {'real' if inverse else 'complex'} numbers")
        dims[-1] = Dim.of(1 if inverse and onesided else 2)
        known = (-2,) if self.axis is None else known_ints(self.axis)
        if known is None:
            return [tensor_type(dtype, [*(fresh_dim() for _ in dims[:-1]), dims[-1]])]
        axis = normalize_axis(self, known[0], len(dims), "(C3)")
        if axis == len(dims) - 1:
            raise self.fail(f"(C3) axis {known[0]} is the last one, which holds the complex numbers")
        if self.dft_length is None:
            length = (dims[axis] - 1) * 2 if inverse and onesided else dims[axis]
            if length.static_value is not None and length.static_value < 1:
                raise self.fail(f"(C4) a signal of {dims[axis]} elements has no transform")
        elif length is None:
            length = fresh_dim()
        dims[axis] = length // 2 + 1 if onesided and not inverse else length
        check_allocation(self, dtype, dims, "(C4)")
        return [tensor_type(dtype, dims)]

    def evaluate(self, ctx: EvalContext, *arrays: Array | None) -> Sequence[Array]:
        x, stated, stated_axis = slots(arrays)
        inverse, onesided = self.attr("inverse"), self.attr("onesided")
        axis = run_scalar(self, stated_axis, "axis")
        axis = -2 if axis is None else axis
        if x.ndim < 2 or x.shape[-1] not in (1, 2) or not -x.ndim <= axis < x.ndim or axis % x.ndim == x.ndim - 1:
            raise refuse(self, f"axis {axis} of an operand of shape {list(x.shape)} cannot be transformed")
        if onesided and x.shape[-1] == (1 if inverse else 2):
            raise refuse(self, f"a one-sided transform of {'real' if inverse else 'complex'} numbers")
        axis %= x.ndim
        length = run_scalar(self, stated, "dft_length")
        if length is None:
            length = 2 * (x.shape[axis] - 1) if inverse and onesided else x.shape[axis]
        if length < 1:
            raise refuse(self, f"the transform's length is {length}")
        shape = list(x.shape)
        shape[axis] = length
        check_run_allocation(self, np.dtype(np.float64), [*shape[:-1], 2])
        signal = as_complex(x)
        if not signal.shape[axis]:
            raise refuse(self, "a signal without elements has no transform")
        if inverse and onesided:
            return [narrow(np.fft.irfft(signal, length, axis)[..., None], x.dtype)]
        if onesided:
            return [narrow(as_pairs(np.fft.rfft(signal.real, length, axis)), x.dtype)]
        transform = np.fft.ifft if inverse else np.fft.fft
        return [narrow(as_pairs(transform(signal, length, axis)), x.dtype)]


@irdl_op_definition
class STFTOp(SxOp):
    """The Fourier transforms of frames of a signal [N, length, 1 or 2]: [N, frames, bins, 2].

    A frame of `frame_length` elements (without it the window's, or the whole signal) starts every `frame_step`
    elements, as long as it lies inside, and is multiplied by `window`. `onesided` gives `frame_length / 2 + 1` bins of
    a real signal. Precision as for `sx.dft`.

    (C1) The dtype is one of `DTYPES`, that of `window` the same; `frame_step` and `frame_length` are one int32 or int64
    number each. (C2) The signal has rank 3 and a last extent of 1 or 2; the window has rank 1. (C3) Step and length are
    positive. (C4) `frame_length` is the window's. (C5) The signal is no shorter than a frame. (C6) `onesided` takes
    real numbers.
    """

    name = "sx.stft"
    signal = operand_def()
    frame_step = operand_def()
    window = opt_operand_def()
    frame_length = opt_operand_def()
    onesided = opt_prop_def(IntegerAttr)
    output = result_def()
    irdl_options = SEGMENTS
    ONNX: ClassVar = OnnxForm("STFT", since=17)
    DEFAULTS: ClassVar = {"onesided": True}
    DTYPES: ClassVar[Sequence[DType]] = FLOATS

    def infer(self) -> Sequence[Attribute]:
        dtype = check_dtype(self, self.signal, self.DTYPES, "(C1)")
        step = check_scalar(self, self.frame_step, (int32, int64), "(C1)", "frame_step")
        length = check_scalar(self, self.frame_length, (int32, int64), "(C1)", "frame_length")
        window = self.window
        if window is not None:
            check_dtype(self, window, (dtype,), "(C1)", "window")
            if not is_unranked(window) and rank_of(window) != 1:
                raise self.fail(f"(C2) window has rank {rank_of(window)}, not 1")
        for number, what in ((step, "frame_step"), (length, "frame_length")):
            if number is not None and less_equal(1, number) is Proof.REFUTED:
                raise self.fail(f"(C3) {what} is {number}")
        dims = [fresh_dim() for _ in range(3)] if is_unranked(self.signal) else list(dims_of(self.signal))
        if len(dims) != 3 or dims[2].static_value not in (None, 1, 2):
            raise self.fail(f"(C2) the signal is {format_dims(dims)}, not [N, length, 1 or 2]")
        if self.attr("onesided") and dims[2].static_value == 2:
            raise self.fail("(C6) a one-sided transform of complex numbers")
        if window is not None and not is_unranked(window):
            size = dims_of(window)[0]
            length = size if length is None else merge(self, length, size, "(C4) frame_length and window differ")
        elif length is None:
            length = fresh_dim() if self.frame_length is not None or window is not None else dims[1]
        if less_equal(length, dims[1]) is Proof.REFUTED:
            raise self.fail(f"(C5) a signal of {dims[1]} elements has no frame of {length}")
        frames = fresh_dim() if step is None else (dims[1] - length) // step + 1
        bins = length // 2 + 1 if self.attr("onesided") else length
        check_allocation(self, dtype, [dims[0], frames, bins, 2], "(C3)")
        return [tensor_type(dtype, [dims[0], frames, bins, 2])]

    def evaluate(self, ctx: EvalContext, *arrays: Array | None) -> Sequence[Array]:
        x, stated_step, window, stated_length = slots(arrays)
        step, length = run_scalar(self, stated_step, "frame_step") or 0, run_scalar(self, stated_length, "frame_length")
        if x.ndim != 3 or x.shape[2] not in (1, 2) or (window is not None and window.ndim != 1):
            raise refuse(self, f"a signal of shape {list(x.shape)} or its window has the wrong rank")
        if length is None:
            length = x.shape[1] if window is None else window.size
        if step < 1 or length < 1 or length > x.shape[1] or (window is not None and window.size != length):
            raise refuse(
                self, f"frames of {length} elements every {step} don't fit {x.shape[1]} elements or the window"
            )
        onesided = self.attr("onesided")
        if onesided and x.shape[2] == 2:
            raise refuse(self, "a one-sided transform of complex numbers")
        frames = (x.shape[1] - length) // step + 1
        check_run_allocation(self, np.dtype(np.float64), [x.shape[0], frames, length, 2])
        at = np.arange(frames)[:, None] * step + np.arange(length)
        cut = as_complex(x)[:, at]
        if window is not None:
            cut = cut * (window if window.dtype == np.float32 else double(window))
        spectrum = np.fft.rfft(np.real(cut), axis=-1) if onesided else np.fft.fft(cut, axis=-1)
        return [narrow(as_pairs(spectrum), x.dtype)]


@irdl_op_definition
class MelWeightMatrixOp(SxOp):
    """The matrix [dft_length / 2 + 1, num_mel_bins] that takes a spectrum to bands on the mel scale.

    Bands are triangles with a peak of 1 that start, peak and end at `num_mel_bins + 2` frequencies, spaced evenly in
    mel from `lower_edge_hertz` on by `(upper - lower) / (num_mel_bins + 2)`, each rounded down to a bin of the
    spectrum. In float64.

    (C1) The first three operands are numbers of int32 or int64, the edges of floats; `output_datatype` is numeric.
    (C2) The numbers are positive (bins may be 0). (C3) The bands lie inside the spectrum.
    """

    name = "sx.mel_weight_matrix"
    num_mel_bins = operand_def()
    dft_length = operand_def()
    sample_rate = operand_def()
    lower_edge_hertz = operand_def()
    upper_edge_hertz = operand_def()
    output_datatype = opt_prop_def(Attribute)
    output = result_def()
    ONNX: ClassVar = OnnxForm("MelWeightMatrix", since=17)
    DEFAULTS: ClassVar = {"output_datatype": float32}
    DTYPES: ClassVar[Sequence[DType]] = NUMERIC

    def target(self) -> DType:
        try:
            dtype = DType.of(self.attr("output_datatype"))
        except InvalidArgumentError:
            raise self.fail(f"(C1) {self.output_datatype} is not a dtype") from None
        if dtype not in self.DTYPES:
            raise self.fail(f"(C1) output_datatype is {dtype}; allowed: {', '.join(map(str, self.DTYPES))}")
        return dtype

    def infer(self) -> Sequence[Attribute]:
        dtype = self.target()
        numbers = [
            check_scalar(self, value, (int32, int64), "(C1)", what)
            for value, what in (
                (self.num_mel_bins, "num_mel_bins"),
                (self.dft_length, "dft_length"),
                (self.sample_rate, "sample_rate"),
            )
        ]
        for edge, what in ((self.lower_edge_hertz, "lower_edge_hertz"), (self.upper_edge_hertz, "upper_edge_hertz")):
            check_scalar(self, edge, FLOATS, "(C1)", what)
        for number, least in zip(numbers, (0, 1, 1), strict=True):
            if number is not None and less_equal(least, number) is Proof.REFUTED:
                raise self.fail(f"(C2) one of the numbers is {number}")
        bins, length = numbers[0], numbers[1]
        out = [fresh_dim() if length is None else length // 2 + 1, fresh_dim() if bins is None else bins]
        check_allocation(self, dtype, out, "(C2)")
        return [tensor_type(dtype, out)]

    def evaluate(self, ctx: EvalContext, *arrays: Array | None) -> Sequence[Array]:
        if any(a is None or a.size != 1 for a in arrays):
            raise refuse(self, "each operand is one number")
        bands, length, rate = (int(a.reshape(-1)[0]) for a in arrays[:3] if a is not None)
        low, high = (float(double(a).reshape(-1)[0]) for a in arrays[3:] if a is not None)
        if bands < 0 or length < 1 or rate < 1 or not -700 < low < math.inf or not -700 < high < math.inf:
            raise refuse(self, f"{bands} bands of {length} bins at {rate} Hz from {low} to {high} make no matrix")
        shape = (length // 2 + 1, bands)
        check_run_allocation(self, np.dtype(np.float64), shape)
        edges = [2595 * math.log10(1 + f / 700) for f in (low, high)]
        mel = np.arange(bands + 2) * ((edges[1] - edges[0]) / (bands + 2)) + edges[0]
        hertz = 700 * (10 ** (mel / 2595) - 1)
        at = np.floor((length + 1) * hertz / rate)
        if bands and not ((at >= 0) & (at < shape[0])).all():
            raise refuse(self, f"the bands reach bin {int(at.max())}, the spectrum has {shape[0]}")
        out, bin_ = np.zeros(shape), np.arange(shape[0])
        for band in range(bands):
            left, peak, right = at[band : band + 3]
            rising = np.where((bin_ >= left) & (bin_ <= peak), (bin_ - left) / max(peak - left, 1), 0.0)
            falling = np.where((bin_ >= peak) & (bin_ < right), (right - bin_) / max(right - peak, 1), 0.0)
            out[:, band] = np.where(bin_ == peak, 1.0, rising + falling)
        return [convert(out, self.target())]
