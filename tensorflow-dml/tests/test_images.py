"""Images: resampling, patches, colours, local response normalisation, boxes."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from compare import DEVICE, compare, refuses

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
        compare(
            lambda g, x: raw.ResizeBilinearGrad(grads=g, original_image=x, half_pixel_centers=True),
            g,
            x,
            ulps=16 if dtype == "float32" else 2**33,
        )


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

    def patches(x):
        return raw.ExtractImagePatches(images=x, ksizes=size, strides=strides, rates=rates, padding=padding)

    x = rng.integers(0, 9, (2, 7, 8, 3)).astype("f4")
    compare(patches, x, ulps=0)
    # The CPU lacks these.
    with tf.device("CPU:0"):
        expected = patches(tf.constant(x))
    for dtype in ("c8", "c16", "?"):
        with tf.device(DEVICE):
            actual = patches(tf.constant(x.astype(dtype) * np.asarray(1j if dtype[0] == "c" else 1, dtype)))
        wanted = expected.numpy().astype(dtype)
        np.testing.assert_array_equal(actual.numpy(), wanted * 1j if dtype[0] == "c" else wanted)


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_volume_patches(rng, padding: str) -> None:
    x = rng.standard_normal((2, 5, 4, 6, 3)).astype("f4")
    compare(
        lambda x: raw.ExtractVolumePatches(input=x, ksizes=[1, 2, 3, 2, 1], strides=[1, 2, 1, 2, 1], padding=padding),
        x,
        ulps=0,
    )


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
    compare(
        lambda b, s: raw.NonMaxSuppressionV4(
            boxes=b, scores=s, score_threshold=least, pad_to_max_output_size=True, **host
        ),
        b,
        s,
    )


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


def regions(rng, n: int) -> np.ndarray:
    """Boxes in an image, beyond it, and with exchanged corners."""
    b = rng.random((n, 4)).astype("f4")
    b[1] = [-0.3, 0.2, 0.7, 1.4]
    b[2] = [0.8, 0.9, 0.1, 0.2]
    return b


@pytest.mark.parametrize("method", ["bilinear", "nearest"])
@pytest.mark.parametrize("size", [(3, 4), (1, 5), (6, 1)])
def test_crop_and_resize(rng, size, method: str) -> None:
    x, b = rng.standard_normal((2, 5, 7, 3)).astype("f4"), regions(rng, 6)
    images = rng.integers(0, 2, 6).astype("i4")
    g = rng.standard_normal((6, *size, 3)).astype("f4")
    compare(
        lambda x, b, i: raw.CropAndResize(
            image=x, boxes=b, box_ind=i, crop_size=size, method=method, extrapolation_value=9
        ),
        x,
        b,
        images,
        ulps=16,
    )
    compare(
        lambda g, b, i: raw.CropAndResizeGradImage(
            grads=g, boxes=b, box_ind=i, image_size=x.shape, T=tf.float32, method=method
        ),
        g,
        b,
        images,
        ulps=16,
    )
    if method == "bilinear":
        compare(
            lambda g, x, b, i: raw.CropAndResizeGradBoxes(grads=g, image=x, boxes=b, box_ind=i),
            g,
            x,
            b,
            images,
            ulps=64,
        )


@pytest.mark.parametrize("dtype", ["float16", "float64"])
def test_crop_and_resize_of_dtypes(rng, dtype: str) -> None:
    x, b, images = (
        tf.cast(rng.standard_normal((2, 5, 7, 3)), dtype),
        regions(rng, 6),
        rng.integers(0, 2, 6).astype("i4"),
    )
    g = rng.standard_normal((6, 3, 4, 3)).astype("f4")
    compare(lambda x, b, i: raw.CropAndResize(image=x, boxes=b, box_ind=i, crop_size=(3, 4)), x, b, images, ulps=16)
    # The CPU sums in the images' dtype; here sums are float32.
    compare(
        lambda g, b, i: raw.CropAndResizeGradImage(grads=g, boxes=b, box_ind=i, image_size=x.shape, T=x.dtype),
        g,
        b,
        images,
        ulps=8 if dtype == "float16" else 2**33,
    )


def test_crop_and_resize_of_nothing(rng) -> None:
    x = rng.standard_normal((2, 5, 7, 3)).astype("f4")
    none = np.zeros((0, 4), "f4"), np.zeros(0, "i4")
    compare(lambda x, b, i: raw.CropAndResize(image=x, boxes=b, box_ind=i, crop_size=(3, 4)), x, *none)
    compare(
        lambda g, b, i: raw.CropAndResizeGradImage(grads=g, boxes=b, box_ind=i, image_size=x.shape, T=tf.float32),
        np.zeros((0, 3, 4, 3), "f4"),
        *none,
    )
    refuses(lambda x, b, i: raw.CropAndResize(image=x, boxes=b, box_ind=i, crop_size=(3, 0)), x, *none)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize("case", [((3, 3), (1, 1), (1, 1)), ((2, 3), (2, 1), (1, 2))])
def test_dilation(rng, case, padding: str, dtype: str) -> None:
    size, strides, rates = case
    arguments = {"strides": [1, *strides, 1], "rates": [1, *rates, 1], "padding": padding}
    x, w = (tf.cast(rng.integers(-9, 9, shape), dtype) for shape in ((2, 6, 7, 3), (*size, 3)))
    compare(lambda x, w: raw.Dilation2D(input=x, filter=w, **arguments), x, w, ulps=0)
    with tf.device("CPU:0"):
        g = tf.cast(rng.integers(-4, 4, raw.Dilation2D(input=x, filter=w, **arguments).shape), dtype)
    compare(
        lambda *t: raw.Dilation2DBackpropInput(input=t[0], filter=t[1], out_backprop=t[2], **arguments), x, w, g, ulps=0
    )
    compare(
        lambda *t: raw.Dilation2DBackpropFilter(input=t[0], filter=t[1], out_backprop=t[2], **arguments),
        x,
        w,
        g,
        ulps=0,
    )


@pytest.mark.parametrize("dtype", ["float32", "float16", "float64", "int32", "int64", "uint8"])
@pytest.mark.parametrize("mode", ["CONSTANT", "REFLECT", "WRAP", "NEAREST"])
@pytest.mark.parametrize("interpolation", ["NEAREST", "BILINEAR"])
def test_projective_transform(rng, interpolation: str, mode: str, dtype: str) -> None:
    x = tf.cast(rng.integers(0, 99, (2, 5, 6, 2)), dtype)
    # Of eighths, so that no sum is rounded.
    maps = np.array([[1, 0.25, -2.5, 0.5, 1, 3, 0, 0], [-0.75, 0, 7.25, 0, 1.5, -4, 0, 0]], "f4")
    arguments = {"interpolation": interpolation, "fill_mode": mode}
    for t in (maps, maps[:1]):
        compare(
            lambda x, t: raw.ImageProjectiveTransformV2(images=x, transforms=t, output_shape=(7, 4), **arguments),
            x,
            t,
            ulps=2,
        )
    compare(
        lambda x, t: raw.ImageProjectiveTransformV3(
            images=x, transforms=t, output_shape=(7, 4), fill_value=np.float32(3), **arguments
        ),
        x,
        maps,
        ulps=2,
    )
