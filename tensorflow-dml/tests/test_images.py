"""Images: resampling, patches, colours, local response normalisation, boxes."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from compare import DEVICE, assert_equal, compare, refuses

raw = tf.raw_ops
FLOATS = ["float32", "float16", "bfloat16", "float64"]
SIZES = [((5, 4), (10, 8)), ((7, 9), (3, 4)), ((6, 5), (6, 5)), ((4, 4), (7, 11)), ((3, 5), (1, 1)), ((1, 1), (4, 3))]
MODES = [(False, False), (True, False), (False, True)]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("size", SIZES)
def test_resize_bilinear(rng, size, mode) -> None:
    before, after = size
    arguments = {"align_corners": mode[0], "half_pixel_centers": mode[1]}
    x = rng.standard_normal((2, *before, 3)).astype("f4")
    g = rng.standard_normal((2, *after, 3)).astype("f4")
    compare(lambda x: raw.ResizeBilinear(images=x, size=after, **arguments), x, ulps=16)
    compare(lambda g, x: raw.ResizeBilinearGrad(grads=g, original_image=x, **arguments), g, x, ulps=16)


@pytest.mark.parametrize("dtype", FLOATS)
def test_resize_bilinear_of_dtypes(rng, dtype: str) -> None:
    x = tf.cast(rng.standard_normal((2, 5, 4, 3)), dtype)
    g = rng.standard_normal((2, 9, 7, 3)).astype("f4")
    compare(lambda x: raw.ResizeBilinear(images=x, size=(9, 7), half_pixel_centers=True), x, ulps=16)
    if dtype not in ("float16", "bfloat16"):
        compare(lambda g, x: raw.ResizeBilinearGrad(grads=g, original_image=x, half_pixel_centers=True), g, x,
                ulps=16 if dtype == "float32" else 2**33)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("size", SIZES)
def test_resize_nearest(rng, size, mode, dtype: str) -> None:
    before, after = size
    arguments = {"align_corners": mode[0], "half_pixel_centers": mode[1]}
    x = tf.cast(rng.standard_normal((2, *before, 3)), dtype)
    g = tf.cast(rng.integers(-4, 4, (2, *after, 3)), dtype)
    compare(lambda x: raw.ResizeNearestNeighbor(images=x, size=after, **arguments), x, ulps=0)
    compare(lambda g: raw.ResizeNearestNeighborGrad(grads=g, size=before, **arguments), g, ulps=1)


def test_resizing_refusals() -> None:
    x = np.ones((1, 2, 2, 1), "f4")
    refuses(lambda x: raw.ResizeBilinear(images=x, size=(0, 2)), x)
    refuses(lambda x: raw.ResizeBilinear(images=x, size=(2, 2, 2)), x)
    refuses(lambda x: raw.ResizeNearestNeighbor(images=x, size=(2, 2)), x[0])


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize("case", [((2, 2), (1, 1), (1, 1)), ((3, 2), (2, 3), (1, 1)), ((2, 3), (1, 2), (2, 3))])
def test_image_patches(rng, case, padding: str) -> None:
    size, strides, rates = ([1, *pair, 1] for pair in case)
    for dtype in ("f4", "c8", "?"):
        x = rng.integers(0, 2 if dtype == "?" else 9, (2, 7, 8, 3)).astype(dtype)
        compare(lambda x: raw.ExtractImagePatches(images=x, ksizes=size, strides=strides, rates=rates, padding=padding),
                x, ulps=0)


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_volume_patches(rng, padding: str) -> None:
    x = rng.standard_normal((2, 5, 4, 6, 3)).astype("f4")
    compare(lambda x: raw.ExtractVolumePatches(input=x, ksizes=[1, 2, 3, 2, 1], strides=[1, 2, 1, 2, 1], padding=padding),
            x, ulps=0)


@pytest.mark.parametrize("radius", [0, 1, 2, 9])
def test_local_response(rng, radius: int) -> None:
    x = rng.standard_normal((2, 3, 2, 7)).astype("f4")
    arguments = {"depth_radius": radius, "bias": 2.0, "alpha": 0.5, "beta": 0.75}
    compare(lambda x: raw.LRN(input=x, **arguments), x, ulps=16)
    with tf.device("CPU:0"):
        y = raw.LRN(input=x, **arguments)
    g = rng.standard_normal(x.shape).astype("f4")
    compare(lambda g, x, y: raw.LRNGrad(input_grads=g, input_image=x, output_image=y, **arguments), g, x, y, ulps=16)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_hsv(rng, dtype: str) -> None:
    x = rng.random((2, 5, 3)).astype(dtype)
    x[0, 0], x[0, 1], x[0, 2], x[0, 3] = 0.5, [0.2, 0.7, 0.7], [0.7, 0.2, 0.7], [0, 0, 0]
    compare(lambda x: raw.RGBToHSV(images=x), x, ulps=8)
    compare(lambda x: raw.HSVToRGB(images=x), x, ulps=8)
    refuses(lambda x: raw.RGBToHSV(images=x), x[..., :2])


@pytest.mark.parametrize("amount", [-0.4, 0.0, 0.3, 1.2])
def test_adjustments(rng, amount: float) -> None:
    x = rng.random((2, 4, 5, 3)).astype("f4")
    amount = np.float32(amount)
    compare(lambda x, d: raw.AdjustHue(images=x, delta=d), x, amount, ulps=64)
    compare(lambda x, d: raw.AdjustSaturation(images=x, scale=d), x, amount, ulps=64)
    compare(lambda x, d: raw.AdjustContrastv2(images=x, contrast_factor=d), x, amount, ulps=16)


def boxes(rng, n: int) -> np.ndarray:
    corners = rng.random((n, 2, 2)) * 4
    # Some boxes with exchanged corners, some without an area, some equal ones.
    b = np.concatenate([corners[:, 0], corners[:, 0] + rng.random((n, 2)) * 3], 1).astype("f4")
    b[::5] = b[::5][:, [2, 3, 0, 1]]
    b[1::7, 2] = b[1::7, 0]
    b[3::6] = b[2]
    return b


@pytest.mark.parametrize("n", [0, 1, 40, 200])
@pytest.mark.parametrize("most", [0, 3, 1000])
def test_non_max_suppression(rng, n: int, most: int) -> None:
    b, s = boxes(rng, n) if n > 5 else rng.random((n, 4)).astype("f4"), rng.integers(0, 9, n).astype("f4") / 8
    s[4::9] = np.nan
    overlap, least, most = np.float32(0.4), np.float32(0.25), np.int32(most)
    host = {"max_output_size": most, "iou_threshold": overlap}
    compare(lambda b, s: raw.NonMaxSuppressionV3(boxes=b, scores=s, score_threshold=least, **host), b, s)
    s = np.nan_to_num(s)
    compare(lambda b, s: raw.NonMaxSuppressionV2(boxes=b, scores=s, **host), b, s)
    compare(lambda b, s: raw.NonMaxSuppressionV4(boxes=b, scores=s, score_threshold=least, pad_to_max_output_size=True, **host),
            b, s)


def test_non_max_suppression_refusals(rng) -> None:
    b, s = boxes(rng, 8), rng.random(8).astype("f4")
    refuses(lambda b, s: raw.NonMaxSuppressionV2(boxes=b, scores=s, max_output_size=3, iou_threshold=1.5), b, s)
    refuses(lambda b, s: raw.NonMaxSuppressionV2(boxes=b, scores=s, max_output_size=3, iou_threshold=0.5), b[:, :3], s)
    refuses(lambda b, s: raw.NonMaxSuppressionV2(boxes=b, scores=s, max_output_size=3, iou_threshold=0.5), b, s[1:])


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_data_formats(rng, dtype: str) -> None:
    for shape in [(4,), (2,), (4, 2), (2, 2)]:
        x = rng.integers(0, 9, shape).astype(dtype)
        for formats in [("NHWC", "NCHW"), ("NCHW", "NHWC"), ("NHWC", "HWNC")]:
            compare(lambda x: raw.DataFormatVecPermute(x=x, src_format=formats[0], dst_format=formats[1]), x)
    x = rng.integers(-4, 4, (3, 2)).astype(dtype)
    compare(lambda x: raw.DataFormatDimMap(x=x, src_format="NHWC", dst_format="NCHW"), x)
