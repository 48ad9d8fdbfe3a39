#!/bin/sh
# Every step of a careful export, one command each; stops at the first that fails. See docs/verify.md.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
out=${1:-$(mktemp -d)}
mkdir -p "$out"
net="$here/net.py"
model="$out/net.onnx"
sizes="--dim batch=1,8 --dim seq=1,16"

# 1, 2: a pinned opset, named dims, checker, strict shape inference, simplification
sardonyx export "$net:forward" -o "$model" --opset 18 --strict --lint $sizes --inputs "$net:requests"
# 3: operator gaps of the targets
sardonyx ops "$model" --target onnxruntime --target tensorrt@18 --target openvino
# 4: data-dependent Python is refused while tracing; --lint above reports what became constant
# 5: parity with the source on real inputs, and the task's metric
sardonyx verify "$net:reference" "$model" $sizes --inputs "$net:requests" --metric "$net:same_labels>=1"
# 6: on the execution provider of the deployment; one that is not installed is untested, with --strict an error
sardonyx verify "$net:reference" "$model" $sizes --inputs "$net:requests" --ep cpu --strict
# 7: golden inputs and outputs, checked again after every export
sardonyx golden freeze "$net:reference" "$model" -o "$out/net.golden.npz" $sizes --inputs "$net:requests"
sardonyx golden check "$out/net.golden.npz" "$model"
# and what one signs: the certificate that export wrote, and a report
sardonyx verify --certificate "$out/net.certificate.json"
sardonyx report "$net:reference" "$model" -o "$out/net.report.html" $sizes --inputs "$net:requests" --seconds 0.2
