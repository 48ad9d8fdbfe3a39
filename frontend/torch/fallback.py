"""torch's own exporter, where the user allows it: the only place that knows torch.onnx."""

from __future__ import annotations

from typing import Any

from sardonyx.errors import SardonyxError
from sardonyx.frontend.graph import ModelGraph
from sardonyx.frontend.torch.capture import quiet
from sardonyx.frontend.torch.errors import unsupported
from sardonyx.frontend.torch.options import Options
from sardonyx.frontend.torch.program import ONNXProgram


def export_by_torch(model: Any, args: tuple[Any, ...], options: Options) -> ONNXProgram:
    """The model by torch.onnx.export.

    Raises:
        UnsupportedError: It fails, too, or is not installed whole (it needs onnxscript).
    """
    try:
        import torch.onnx

        with quiet():
            made = torch.onnx.export(
                model,
                args,
                kwargs=options.kwargs or None,
                input_names=options.input_names,
                output_names=options.output_names,
                opset_version=options.opset_version,
                dynamic_shapes=options.dynamic_shapes,
                dynamic_axes=options.dynamic_axes,
                optimize=options.optimize,
                dynamo=True,
                verbose=False,
            )
    except Exception as error:
        text = str(error).strip().splitlines()
        raise unsupported(
            f"torch's own exporter failed, too: {type(error).__name__}: {text[0] if text else ''}"
        ) from error
    if made is None:
        raise unsupported("torch's own exporter returned nothing")
    from sardonyx.frontend.onnx.model import OnnxModel

    opened = OnnxModel.from_proto(made.model_proto)
    try:
        graph: ModelGraph = opened.compile()
    except SardonyxError as error:
        raise unsupported(f"the model that torch's exporter made cannot be read: {error.message}") from error
    program = ONNXProgram(graph, made.exported_program, options)
    program._model = opened
    if options.f is not None:
        program.save(options.f, external_data=options.external_data)
    return program
