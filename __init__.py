"""Sardonyx: trace a tensor function, rewrite it, run it natively and export it to ONNX, over one IR.

This module is the public face: it re-exports, and does nothing else. It is lazy (PEP 562), because importing any
submodule executes it, and `import sardonyx` and `sardonyx-opt --help` must not pay for NumPy, ONNX or LLVM.

To add a public name, add it to `_NAMES` and to the imports under `TYPE_CHECKING` (as `Name as Name`, which
tells type checkers that it is re-exported); `tests/test_face.py` holds the two and `__all__` together.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sardonyx.dialects.dtypes import (
        DType as DType,
        bfloat16 as bfloat16,
        bool_ as bool_,
        float4e2m1 as float4e2m1,
        float6e2m3 as float6e2m3,
        float6e3m2 as float6e3m2,
        float8e4m3fn as float8e4m3fn,
        float8e4m3fnuz as float8e4m3fnuz,
        float8e5m2 as float8e5m2,
        float8e5m2fnuz as float8e5m2fnuz,
        float8e8m0 as float8e8m0,
        float16 as float16,
        float32 as float32,
        float64 as float64,
        int2 as int2,
        int4 as int4,
        int8 as int8,
        int16 as int16,
        int32 as int32,
        int64 as int64,
        uint2 as uint2,
        uint4 as uint4,
        uint8 as uint8,
        uint16 as uint16,
        uint32 as uint32,
        uint64 as uint64,
    )
    from sardonyx.dialects.weights import (
        WeightStore as WeightStore,
    )
    from sardonyx.errors import (
        ExecutionError as ExecutionError,
        FailedPreconditionError as FailedPreconditionError,
        InferenceError as InferenceError,
        InvalidArgumentError as InvalidArgumentError,
        MissingWeightError as MissingWeightError,
        OnnxLossWarning as OnnxLossWarning,
        SardonyxError as SardonyxError,
        UnsupportedError as UnsupportedError,
    )
    from sardonyx.frontend import (
        layers as layers,
        linalg as linalg,
        nn as nn,
    )
    from sardonyx.frontend.compiled import (
        CompiledModel as CompiledModel,
        compile_to as compile_to,
        load_compiled as load_compiled,
    )
    from sardonyx.frontend.custom import (
        CustomOp as CustomOp,
        custom_op as custom_op,
    )
    from sardonyx.frontend.embedding import (
        IRModule as IRModule,
        parse as parse,
        register_evaluator as register_evaluator,
        run_pipeline as run_pipeline,
    )
    from sardonyx.frontend.export import (
        OperatorExportTypes as OperatorExportTypes,
        TrainingMode as TrainingMode,
        export as export,
    )
    from sardonyx.frontend.functions.activation import (
        celu as celu,
        elu as elu,
        gelu as gelu,
        hard_sigmoid as hard_sigmoid,
        hard_swish as hard_swish,
        hardmax as hardmax,
        leaky_relu as leaky_relu,
        log_softmax as log_softmax,
        mish as mish,
        prelu as prelu,
        relu as relu,
        relu6 as relu6,
        selu as selu,
        shrink as shrink,
        sigmoid as sigmoid,
        silu as silu,
        softmax as softmax,
        softplus as softplus,
        softsign as softsign,
        swish as swish,
        thresholded_relu as thresholded_relu,
    )
    from sardonyx.frontend.functions.constants import (
        e as e,
        inf as inf,
        nan as nan,
        newaxis as newaxis,
        pi as pi,
    )
    from sardonyx.frontend.functions.control import (
        cond as cond,
        fori as fori,
        fori_loop as fori_loop,
        scan as scan,
        while_loop as while_loop,
    )
    from sardonyx.frontend.functions.creation import (
        arange as arange,
        array as array,
        asarray as asarray,
        empty as empty,
        empty_like as empty_like,
        eye as eye,
        from_dlpack as from_dlpack,
        full as full,
        full_like as full_like,
        linspace as linspace,
        meshgrid as meshgrid,
        ones as ones,
        ones_like as ones_like,
        tril as tril,
        trilu as trilu,
        triu as triu,
        zeros as zeros,
        zeros_like as zeros_like,
    )
    from sardonyx.frontend.functions.data_types import (
        bool as bool,
        can_cast as can_cast,
        finfo as finfo,
        iinfo as iinfo,
        isdtype as isdtype,
    )
    from sardonyx.frontend.functions.differences import (
        diff as diff,
        isin as isin,
        searchsorted as searchsorted,
    )
    from sardonyx.frontend.functions.elementwise import (
        abs as abs,
        absolute as absolute,
        acos as acos,
        acosh as acosh,
        add as add,
        asin as asin,
        asinh as asinh,
        astype as astype,
        atan as atan,
        atanh as atanh,
        bitwise_and as bitwise_and,
        bitwise_invert as bitwise_invert,
        bitwise_left_shift as bitwise_left_shift,
        bitwise_not as bitwise_not,
        bitwise_or as bitwise_or,
        bitwise_right_shift as bitwise_right_shift,
        bitwise_xor as bitwise_xor,
        cast as cast,
        cast_like as cast_like,
        ceil as ceil,
        clamp as clamp,
        clip as clip,
        cos as cos,
        cosh as cosh,
        div as div,
        divide as divide,
        equal as equal,
        erf as erf,
        exp as exp,
        exp2 as exp2,
        expm1 as expm1,
        floor as floor,
        floor_divide as floor_divide,
        fmod as fmod,
        greater as greater,
        greater_equal as greater_equal,
        hypot as hypot,
        identity as identity,
        isfinite as isfinite,
        isinf as isinf,
        isnan as isnan,
        less as less,
        less_equal as less_equal,
        log as log,
        log1p as log1p,
        log2 as log2,
        log10 as log10,
        logaddexp as logaddexp,
        logical_and as logical_and,
        logical_not as logical_not,
        logical_or as logical_or,
        logical_xor as logical_xor,
        maximum as maximum,
        mean_of as mean_of,
        minimum as minimum,
        mod as mod,
        mul as mul,
        multiply as multiply,
        neg as neg,
        negative as negative,
        not_equal as not_equal,
        positive as positive,
        pow as pow,
        power as power,
        reciprocal as reciprocal,
        remainder as remainder,
        result_type as result_type,
        round as round,
        rsqrt as rsqrt,
        sign as sign,
        sin as sin,
        sinh as sinh,
        sqrt as sqrt,
        square as square,
        sub as sub,
        subtract as subtract,
        sum_of as sum_of,
        tan as tan,
        tanh as tanh,
        true_divide as true_divide,
        trunc as trunc,
        where as where,
    )
    from sardonyx.frontend.functions.gathering import (
        gather as gather,
        gather_elements as gather_elements,
        gather_nd as gather_nd,
        slice as slice,
        take as take,
        take_along_axis as take_along_axis,
    )
    from sardonyx.frontend.functions.inplace import (
        abs_ as abs_,
        add_ as add_,
        bitwise_and_ as bitwise_and_,
        bitwise_or_ as bitwise_or_,
        bitwise_xor_ as bitwise_xor_,
        ceil_ as ceil_,
        clamp_ as clamp_,
        clip_ as clip_,
        copy_ as copy_,
        cos_ as cos_,
        div_ as div_,
        divide_ as divide_,
        exp_ as exp_,
        fill_ as fill_,
        floor_ as floor_,
        floor_divide_ as floor_divide_,
        gelu_ as gelu_,
        log_ as log_,
        logical_and_ as logical_and_,
        logical_not_ as logical_not_,
        logical_or_ as logical_or_,
        maximum_ as maximum_,
        minimum_ as minimum_,
        mul_ as mul_,
        multiply_ as multiply_,
        neg_ as neg_,
        negative_ as negative_,
        pow_ as pow_,
        reciprocal_ as reciprocal_,
        relu_ as relu_,
        remainder_ as remainder_,
        round_ as round_,
        rsqrt_ as rsqrt_,
        sigmoid_ as sigmoid_,
        sign_ as sign_,
        silu_ as silu_,
        sin_ as sin_,
        softplus_ as softplus_,
        sqrt_ as sqrt_,
        square_ as square_,
        sub_ as sub_,
        subtract_ as subtract_,
        tanh_ as tanh_,
        trunc_ as trunc_,
        zero_ as zero_,
    )
    from sardonyx.frontend.functions.joining import (
        chunk as chunk,
        concat as concat,
        concatenate as concatenate,
        flip as flip,
        pad as pad,
        repeat as repeat,
        roll as roll,
        split as split,
        stack as stack,
        tile as tile,
        unstack as unstack,
    )
    from sardonyx.frontend.functions.linalg import (
        det as det,
        dot as dot,
        einsum as einsum,
        gemm as gemm,
        linear as linear,
        matmul as matmul,
        matrix_transpose as matrix_transpose,
        outer as outer,
        tensordot as tensordot,
        vecdot as vecdot,
    )
    from sardonyx.frontend.functions.namespace_info import (
        __array_namespace_info__ as __array_namespace_info__,
    )
    from sardonyx.frontend.functions.nn import (
        average_pool as average_pool,
        batch_norm as batch_norm,
        batch_norm_training as batch_norm_training,
        col2im as col2im,
        conv as conv,
        conv_transpose as conv_transpose,
        deform_conv as deform_conv,
        dropout as dropout,
        global_average_pool as global_average_pool,
        global_lp_pool as global_lp_pool,
        global_max_pool as global_max_pool,
        group_norm as group_norm,
        instance_norm as instance_norm,
        layer_norm as layer_norm,
        lp_normalization as lp_normalization,
        lp_pool as lp_pool,
        lrn as lrn,
        max_pool as max_pool,
        max_pool_with_indices as max_pool_with_indices,
        max_unpool as max_unpool,
        rms_norm as rms_norm,
    )
    from sardonyx.frontend.functions.quantization import (
        conv_integer as conv_integer,
        dequantize_linear as dequantize_linear,
        dynamic_quantize_linear as dynamic_quantize_linear,
        matmul_integer as matmul_integer,
        quantize_linear as quantize_linear,
    )
    from sardonyx.frontend.functions.random import (
        bernoulli as bernoulli,
        multinomial as multinomial,
        random_normal as random_normal,
        random_normal_like as random_normal_like,
        random_uniform as random_uniform,
        random_uniform_like as random_uniform_like,
    )
    from sardonyx.frontend.functions.recurrent import (
        gru as gru,
        lstm as lstm,
        rnn as rnn,
    )
    from sardonyx.frontend.functions.reductions import (
        all as all,
        any as any,
        arg_max as arg_max,
        arg_min as arg_min,
        argmax as argmax,
        argmin as argmin,
        count_nonzero as count_nonzero,
        cumprod as cumprod,
        cumsum as cumsum,
        cumulative_prod as cumulative_prod,
        cumulative_sum as cumulative_sum,
        logsumexp as logsumexp,
        max as max,
        mean as mean,
        min as min,
        prod as prod,
        reduce_l1 as reduce_l1,
        reduce_l2 as reduce_l2,
        reduce_log_sum as reduce_log_sum,
        reduce_log_sum_exp as reduce_log_sum_exp,
        reduce_max as reduce_max,
        reduce_mean as reduce_mean,
        reduce_min as reduce_min,
        reduce_prod as reduce_prod,
        reduce_sum as reduce_sum,
        reduce_sum_square as reduce_sum_square,
        std as std,
        sum as sum,
        var as var,
    )
    from sardonyx.frontend.functions.sampling import (
        affine_grid as affine_grid,
        dft as dft,
        grid_sample as grid_sample,
        interpolate as interpolate,
        resize as resize,
        roi_align as roi_align,
        stft as stft,
    )
    from sardonyx.frontend.functions.selecting import (
        UniqueAll as UniqueAll,
        UniqueCounts as UniqueCounts,
        UniqueInverse as UniqueInverse,
        argsort as argsort,
        argwhere as argwhere,
        compress as compress,
        non_max_suppression as non_max_suppression,
        nonzero as nonzero,
        one_hot as one_hot,
        reverse_sequence as reverse_sequence,
        scatter as scatter,
        scatter_elements as scatter_elements,
        scatter_nd as scatter_nd,
        sort as sort,
        tensor_scatter as tensor_scatter,
        top_k as top_k,
        topk as topk,
        unique as unique,
        unique_all as unique_all,
        unique_counts as unique_counts,
        unique_inverse as unique_inverse,
        unique_values as unique_values,
    )
    from sardonyx.frontend.functions.shape import (
        broadcast_arrays as broadcast_arrays,
        broadcast_shapes as broadcast_shapes,
        broadcast_to as broadcast_to,
        depth_to_space as depth_to_space,
        expand as expand,
        expand_dims as expand_dims,
        flatten as flatten,
        moveaxis as moveaxis,
        permute_dims as permute_dims,
        ravel as ravel,
        reshape as reshape,
        shape as shape,
        size as size,
        space_to_depth as space_to_depth,
        squeeze as squeeze,
        swapaxes as swapaxes,
        transpose as transpose,
        unsqueeze as unsqueeze,
    )
    from sardonyx.frontend.functions.signs import (
        atan2 as atan2,
        copysign as copysign,
        nextafter as nextafter,
        signbit as signbit,
    )
    from sardonyx.frontend.graph import (
        ModelGraph as ModelGraph,
    )
    from sardonyx.frontend.jit import (
        jit as jit,
    )
    from sardonyx.frontend.onnx.model import (
        OnnxModel as OnnxModel,
    )
    from sardonyx.frontend.signature import (
        parse_signature as parse_signature,
        signature as signature,
    )
    from sardonyx.frontend.spec import (
        TensorSpec as TensorSpec,
    )
    from sardonyx.frontend.tensor import (
        Tensor as Tensor,
    )
    from sardonyx.frontend.torch.context import (
        is_in_onnx_export as is_in_onnx_export,
    )
    from sardonyx.frontend.torch.custom import (
        register_custom_op_symbolic as register_custom_op_symbolic,
        unregister_custom_op_symbolic as unregister_custom_op_symbolic,
    )
    from sardonyx.frontend.torch.errors import (
        OnnxExporterError as OnnxExporterError,
    )
    from sardonyx.frontend.torch.modes import (
        select_model_mode_for_export as select_model_mode_for_export,
    )
    from sardonyx.frontend.torch.program import (
        ONNXProgram as ONNXProgram,
    )
    from sardonyx.frontend.trace import (
        TraceResult as TraceResult,
        trace as trace,
    )
    from sardonyx.frontend.transform import (
        Transform as Transform,
    )
    from sardonyx.frontend.verify.verify import (
        Verification as Verification,
        verify as verify,
    )

__version__ = "0.1.0"
__array_api_version__ = "2024.12"

# Where public names come from, as in `from sardonyx.errors import SardonyxError`: a module, or a package that has the
# module of that name; and the names that it has.
_NAMES = {
    "sardonyx.dialects.dtypes": (
        "DType bfloat16 bool_ float16 float32 float4e2m1 float64 float6e2m3 float6e3m2 float8e4m3fn "
        "float8e4m3fnuz float8e5m2 float8e5m2fnuz float8e8m0 int16 int2 int32 int4 int64 int8 uint16 uint2 "
        "uint32 uint4 uint64 uint8"
    ),
    "sardonyx.dialects.weights": "WeightStore",
    "sardonyx.errors": (
        "ExecutionError FailedPreconditionError InferenceError InvalidArgumentError MissingWeightError "
        "OnnxLossWarning SardonyxError UnsupportedError"
    ),
    "sardonyx.frontend.export": "OperatorExportTypes TrainingMode export",
    "sardonyx.frontend": "layers linalg nn",
    "sardonyx.frontend.compiled": "CompiledModel compile_to load_compiled",
    "sardonyx.frontend.custom": "CustomOp custom_op",
    "sardonyx.frontend.embedding": "IRModule parse register_evaluator run_pipeline",
    "sardonyx.frontend.functions.activation": (
        "celu elu gelu hard_sigmoid hard_swish hardmax leaky_relu log_softmax mish prelu relu relu6 selu "
        "shrink sigmoid silu softmax softplus softsign swish thresholded_relu"
    ),
    "sardonyx.frontend.functions.control": "cond fori fori_loop scan while_loop",
    "sardonyx.frontend.functions.constants": "e inf nan newaxis pi",
    "sardonyx.frontend.functions.creation": (
        "arange array asarray empty empty_like eye from_dlpack full full_like linspace meshgrid ones "
        "ones_like tril trilu triu zeros zeros_like"
    ),
    "sardonyx.frontend.functions.data_types": "bool can_cast finfo iinfo isdtype",
    "sardonyx.frontend.functions.differences": "diff isin searchsorted",
    "sardonyx.frontend.functions.elementwise": (
        "abs absolute acos acosh add asin asinh astype atan atanh bitwise_and bitwise_invert "
        "bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor cast cast_like ceil clamp "
        "clip cos cosh div divide equal erf exp exp2 expm1 floor floor_divide fmod greater greater_equal "
        "hypot identity isfinite isinf isnan less less_equal log log10 log1p log2 logaddexp logical_and "
        "logical_not logical_or logical_xor maximum mean_of minimum mod mul multiply neg negative not_equal "
        "positive pow power reciprocal remainder result_type round rsqrt sign sin sinh sqrt square sub "
        "subtract sum_of tan tanh true_divide trunc where"
    ),
    "sardonyx.frontend.functions.gathering": "gather gather_elements gather_nd slice take take_along_axis",
    "sardonyx.frontend.functions.inplace": (
        "abs_ add_ bitwise_and_ bitwise_or_ bitwise_xor_ ceil_ clamp_ clip_ copy_ cos_ div_ divide_ exp_ "
        "fill_ floor_ floor_divide_ gelu_ log_ logical_and_ logical_not_ logical_or_ maximum_ minimum_ mul_ "
        "multiply_ neg_ negative_ pow_ reciprocal_ relu_ remainder_ round_ rsqrt_ sigmoid_ sign_ silu_ sin_ "
        "softplus_ sqrt_ square_ sub_ subtract_ tanh_ trunc_ zero_"
    ),
    "sardonyx.frontend.functions.joining": "chunk concat concatenate flip pad repeat roll split stack tile unstack",
    "sardonyx.frontend.functions.linalg": "det dot einsum gemm linear matmul matrix_transpose outer tensordot vecdot",
    "sardonyx.frontend.functions.namespace_info": "__array_namespace_info__",
    "sardonyx.frontend.functions.nn": (
        "average_pool batch_norm batch_norm_training col2im conv conv_transpose deform_conv dropout "
        "global_average_pool global_lp_pool global_max_pool group_norm instance_norm layer_norm "
        "lp_normalization lp_pool lrn max_pool max_pool_with_indices max_unpool rms_norm"
    ),
    "sardonyx.frontend.functions.quantization": (
        "conv_integer dequantize_linear dynamic_quantize_linear matmul_integer quantize_linear"
    ),
    "sardonyx.frontend.functions.random": (
        "bernoulli multinomial random_normal random_normal_like random_uniform random_uniform_like"
    ),
    "sardonyx.frontend.functions.recurrent": "gru lstm rnn",
    "sardonyx.frontend.functions.reductions": (
        "all any arg_max arg_min argmax argmin count_nonzero cumprod cumsum cumulative_prod cumulative_sum "
        "logsumexp max mean min prod reduce_l1 reduce_l2 reduce_log_sum reduce_log_sum_exp reduce_max "
        "reduce_mean reduce_min reduce_prod reduce_sum reduce_sum_square std sum var"
    ),
    "sardonyx.frontend.functions.sampling": "affine_grid dft grid_sample interpolate resize roi_align stft",
    "sardonyx.frontend.functions.selecting": (
        "UniqueAll UniqueCounts UniqueInverse argsort argwhere compress non_max_suppression nonzero one_hot "
        "reverse_sequence scatter scatter_elements scatter_nd sort tensor_scatter top_k topk unique "
        "unique_all unique_counts unique_inverse unique_values"
    ),
    "sardonyx.frontend.functions.shape": (
        "broadcast_arrays broadcast_shapes broadcast_to depth_to_space expand expand_dims flatten moveaxis "
        "permute_dims ravel reshape shape size space_to_depth squeeze swapaxes transpose unsqueeze"
    ),
    "sardonyx.frontend.functions.signs": "atan2 copysign nextafter signbit",
    "sardonyx.frontend.graph": "ModelGraph",
    "sardonyx.frontend.jit": "jit",
    "sardonyx.frontend.onnx.model": "OnnxModel",
    "sardonyx.frontend.signature": "parse_signature signature",
    "sardonyx.frontend.spec": "TensorSpec",
    "sardonyx.frontend.tensor": "Tensor",
    "sardonyx.frontend.torch.context": "is_in_onnx_export",
    "sardonyx.frontend.torch.custom": "register_custom_op_symbolic unregister_custom_op_symbolic",
    "sardonyx.frontend.torch.errors": "OnnxExporterError",
    "sardonyx.frontend.torch.modes": "select_model_mode_for_export",
    "sardonyx.frontend.torch.program": "ONNXProgram",
    "sardonyx.frontend.verify.verify": "Verification verify",
    "sardonyx.frontend.trace": "TraceResult trace",
    "sardonyx.frontend.transform": "Transform",
}
_EXPORTS = {name: module for module, names in _NAMES.items() for name in names.split()}

__all__ = ["__version__", *_EXPORTS]  # pyright: ignore[reportUnsupportedDunderAll]


if not TYPE_CHECKING:  # a checker that sees `__getattr__` takes every misspelt name

    def __getattr__(name: str) -> object:
        module_name = _EXPORTS.get(name)
        if module_name is None:
            raise AttributeError(f"module 'sardonyx' has no attribute {name!r}")
        module = importlib.import_module(module_name)
        value = getattr(module, name) if hasattr(module, name) else importlib.import_module(f"{module_name}.{name}")
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
