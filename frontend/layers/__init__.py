"""Layer networks: lists of layers with learnables, which predict natively and are exported as ONNX.

>>> from sardonyx import layers
>>> net = layers.dlnetwork([
...     layers.feature_input_layer(2, name="features"),
...     layers.fully_connected_layer(2, name="fc"),
...     layers.softmax_layer(name="prob"),
...     layers.classification_layer(name="class"),
... ])
>>> layers.export_onnx_network(net, "network.onnx", opset_version=14)
"""

from sardonyx.frontend.layers.export import export_onnx_network as export_onnx_network
from sardonyx.frontend.layers.layer import (
    ClassificationOutputLayer as ClassificationOutputLayer,
    ELULayer as ELULayer,
    FeatureInputLayer as FeatureInputLayer,
    FullyConnectedLayer as FullyConnectedLayer,
    Layer as Layer,
    RegressionOutputLayer as RegressionOutputLayer,
    ReLULayer as ReLULayer,
    SoftmaxLayer as SoftmaxLayer,
    classification_layer as classification_layer,
    elu_layer as elu_layer,
    feature_input_layer as feature_input_layer,
    fully_connected_layer as fully_connected_layer,
    regression_layer as regression_layer,
    relu_layer as relu_layer,
    softmax_layer as softmax_layer,
)
from sardonyx.frontend.layers.network import (
    DAGNetwork as DAGNetwork,
    Network as Network,
    SeriesNetwork as SeriesNetwork,
    dlnetwork as dlnetwork,
)
