"""A small convolutional classifier of handwritten digits: data, weights, and the script that trained it."""
