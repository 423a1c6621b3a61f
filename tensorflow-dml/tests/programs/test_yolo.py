"""A small YOLO: a backbone of cross-stage partial blocks, pyramid pooling, a neck of two scales, a
loss of boxes' overlap, and boxes after non-maximum suppression.
"""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import layers

from programs.training import as_on_the_cpu

from compare import DEVICE

SIZE, CLASSES = 64, 3
STRIDES = (8, 16)
ANCHORS = np.array([[[10, 13], [16, 30]], [[30, 24], [45, 40]]], "f4")


def _convolution(h, filters: int, kernel: int = 3, strides: int = 1):
    h = layers.Conv2D(filters, kernel, strides, padding="same", use_bias=False)(h)
    return layers.Activation("silu")(layers.BatchNormalization(momentum=0.9)(h))


def _partial(h, filters: int):
    """Half of the channels passes by the bottleneck."""
    passed, changed = _convolution(h, filters // 2, 1), _convolution(h, filters // 2, 1)
    changed = changed + _convolution(_convolution(changed, filters // 2, 1), filters // 2)
    return _convolution(layers.Concatenate()([changed, passed]), filters, 1)


def _pyramid(h, filters: int):
    """Maxima of windows that grow, side by side."""
    pooled = [_convolution(h, filters // 2, 1)]
    for _ in range(3):
        pooled.append(layers.MaxPooling2D(5, 1, padding="same")(pooled[-1]))
    return _convolution(layers.Concatenate()(pooled), filters, 1)


def _model() -> keras.Model:
    image = layers.Input((SIZE, SIZE, 3))
    h = _convolution(_convolution(image, 8, strides=2), 8, strides=2)
    fine = _partial(_convolution(h, 16, strides=2), 16)
    coarse = _pyramid(_convolution(fine, 16, strides=2), 16)
    up = _partial(layers.Concatenate()([layers.UpSampling2D()(_convolution(coarse, 8, 1)), fine]), 16)
    down = _partial(layers.Concatenate()([_convolution(up, 8, strides=2), coarse]), 16)
    return keras.Model(image, [layers.Conv2D(2 * (5 + CLASSES), 1)(scale) for scale in (up, down)])


def _decoded(scales: list[tf.Tensor]) -> tuple[tf.Tensor, tf.Tensor]:
    """Boxes (y1, x1, y2, x2) in pixels, and logits of objects and classes, of all scales."""
    boxes, logits = [], []
    for scale, stride, anchors in zip(scales, STRIDES, ANCHORS, strict=True):
        cells = SIZE // stride
        t = tf.reshape(scale, (-1, cells, cells, 2, 5 + CLASSES))
        rows, columns = tf.meshgrid(tf.range(float(cells)), tf.range(float(cells)), indexing="ij")
        corner = tf.stack([rows, columns], -1)[:, :, None]
        middle = (tf.sigmoid(t[..., :2]) * 2.0 - 0.5 + corner) * float(stride)
        size = tf.square(tf.sigmoid(t[..., 2:4]) * 2.0) * anchors
        boxes.append(tf.reshape(tf.concat([middle - size / 2, middle + size / 2], -1), (-1, cells * cells * 2, 4)))
        logits.append(tf.reshape(t[..., 4:], (-1, cells * cells * 2, 1 + CLASSES)))
    return tf.concat(boxes, 1), tf.concat(logits, 1)


def _overlap(a: tf.Tensor, b: tf.Tensor) -> tf.Tensor:
    """The generalised intersection over union."""

    def area(low, high):
        return tf.reduce_prod(tf.maximum(high - low, 0.0), -1)

    inner = area(tf.maximum(a[..., :2], b[..., :2]), tf.minimum(a[..., 2:], b[..., 2:]))
    union = area(a[..., :2], a[..., 2:]) + area(b[..., :2], b[..., 2:]) - inner
    hull = area(tf.minimum(a[..., :2], b[..., :2]), tf.maximum(a[..., 2:], b[..., 2:]))
    return inner / (union + 1e-7) - (hull - union) / (hull + 1e-7)


def _loss(scales: list[tf.Tensor], truth: tf.Tensor, places: tf.Tensor, classes: tf.Tensor) -> tf.Tensor:
    """`places` are the numbers of the boxes that stand for the true ones."""
    boxes, logits = _decoded(scales)
    overlap = _overlap(tf.gather(boxes, places, batch_dims=1), truth)
    # The target of an object's score is how well its box fits.
    rows = tf.tile(tf.range(tf.shape(places)[0])[:, None], [1, tf.shape(places)[1]])
    found = tf.maximum(tf.stop_gradient(overlap), 0.0)
    target = tf.tensor_scatter_nd_max(tf.zeros_like(logits[..., 0]), tf.stack([rows, places], -1), found)
    score = tf.nn.sigmoid_cross_entropy_with_logits(labels=target, logits=logits[..., 0])
    named = tf.nn.sigmoid_cross_entropy_with_logits(
        labels=tf.one_hot(classes, CLASSES), logits=tf.gather(logits[..., 1:], places, batch_dims=1)
    )
    return tf.reduce_mean(1.0 - overlap) + 4.0 * tf.reduce_mean(score) + tf.reduce_mean(named)


def _trained(device: str) -> tuple[list[float], list[np.ndarray]]:
    """The losses of some steps, and the boxes of an image then."""
    keras.utils.set_random_seed(9)
    rng = np.random.default_rng(9)
    with tf.device(device):
        model = _model()
        optimizer = keras.optimizers.SGD(0.01, momentum=0.9, nesterov=True)
        optimizer.build(model.trainable_variables)

        @tf.function
        def step(images, truth, places, classes):
            with tf.GradientTape() as tape:
                loss = _loss(model(images, training=True), truth, places, classes)
            gradients, _ = tf.clip_by_global_norm(tape.gradient(loss, model.trainable_variables), 10.0)
            optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
            return loss

        @tf.function
        def detect(images):
            boxes, logits = _decoded(model(images, training=False))
            score = tf.sigmoid(logits[0, :, :1]) * tf.sigmoid(logits[0, :, 1:])
            best = tf.reduce_max(score, -1)
            kept = tf.image.non_max_suppression(boxes[0], best, 20, iou_threshold=0.45, score_threshold=0.2)
            return tf.gather(boxes[0], kept), tf.gather(tf.argmax(score, -1), kept)

        images = tf.constant(rng.random((2, SIZE, SIZE, 3)).astype("f4"))
        corners = rng.uniform(0, SIZE / 2, (2, 4, 2))
        truth = tf.constant(np.concatenate([corners, corners + rng.uniform(8, SIZE / 2, (2, 4, 2))], -1).astype("f4"))
        places = tf.constant(rng.integers(0, 160, (2, 4)).astype("i4"))
        classes = tf.constant(rng.integers(0, CLASSES, (2, 4)).astype("i4"))
        losses = [float(step(images, truth, places, classes)) for _ in range(3)]
        return losses, [t.numpy() for t in detect(images)]


@pytest.mark.usefixtures("no_fallbacks")
def test_losses_and_boxes() -> None:
    results: dict[str, list[np.ndarray]] = {}

    def losses(device: str) -> list[float]:
        found, results[device] = _trained(device)
        return found

    as_on_the_cpu(losses)
    (boxes, classes), (expected_boxes, expected_classes) = results[DEVICE], results["CPU:0"]
    assert len(boxes) > 1
    np.testing.assert_allclose(boxes, expected_boxes, rtol=1e-3, atol=1e-2)
    np.testing.assert_array_equal(classes, expected_classes)
