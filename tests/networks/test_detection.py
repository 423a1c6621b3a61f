"""torchvision.ops, compared with the CPU: non-maximum suppression, pooling of regions, deformable
convolution, and a detector.
"""

from __future__ import annotations

import copy
import itertools

import pytest
import torch
from torch import nn

from tests.support.compare import assert_matches_cpu, assert_same, assert_same_error, tensors
from tests.support.dtypes import FLOATS, dtypes
from tests.support.processes import run_python

torchvision = pytest.importorskip("torchvision")
ops = torchvision.ops
raw = torch.ops.torchvision


def boxes(n, size=100.0, largest=40.0, dtype=torch.float32):
    corner = torch.rand(n, 2) * size
    return torch.cat([corner, corner + torch.rand(n, 2) * largest], 1).to(dtype)


def regions(n, images, size=30.0, dtype=torch.float32):
    """Regions of an image of about this size, some of which are partly outside."""
    corner = torch.rand(n, 2) * size * 1.2 - size * 0.2
    number = torch.randint(0, images, (n, 1)).float()
    return torch.cat([number, corner, corner + torch.rand(n, 2) * size * 0.7], 1).to(dtype)


# ---- nms


def assert_nms(dets, scores, threshold):
    wide = dets.dtype if dets.dtype == torch.float64 else torch.float32
    expected = raw.nms(dets.to(wide), scores.to(wide), threshold)
    actual = raw.nms(dets.to("dml"), scores.to("dml"), threshold)
    assert actual.dtype == torch.int64
    assert actual.tolist() == expected.tolist()


@pytest.mark.smoke
@dtypes(FLOATS)
def test_nms(dtype):
    for n, threshold in itertools.product((1, 31, 32, 33, 500, 1024, 1500), (0.0, 0.3, 0.7)):
        dets = boxes(n, dtype=dtype)
        assert_nms(dets, torch.rand(n).to(dtype), threshold)


@pytest.mark.parametrize("largest", [1.0, 30.0, 400.0])
def test_nms_of_many_boxes(largest):
    dets = boxes(12_000, 800.0, largest)
    assert_nms(dets, torch.rand(len(dets)), 0.5)


def test_nms_of_equal_scores_and_boxes():
    dets = boxes(40).repeat(60, 1)
    assert_nms(dets, torch.zeros(len(dets)), 0.5)
    assert_nms(dets, torch.randint(0, 3, (len(dets),)).float(), 0.5)
    assert_nms(dets.floor(), torch.randint(0, 3, (len(dets),)).float(), 0.25)


def test_nms_of_odd_boxes():
    """Empty, inverted, infinite and NaN boxes; and thresholds that every pair exceeds, or none."""
    dets = boxes(200)
    dets[::7] = 5.0
    dets[1::7] = dets[1::7][:, [2, 3, 0, 1]]
    dets[2::14, 2] = torch.inf
    dets[3::14, 0] = torch.nan
    dets[4::14, 3] = torch.nan
    scores = torch.rand(200)
    scores[::11] = torch.nan
    scores[5::13] = -torch.inf
    for threshold in (-0.5, 0.0, 0.1, 0.5, 1.0, 2.0, torch.inf):
        assert_nms(dets, scores, threshold)


def test_nms_at_its_threshold():
    """Overlaps of exactly a half, and of the float32 that is nearest to 0.3."""
    dets = torch.tensor([[0.0, 0, 10, 10], [0, 0, 10, 5], [0, 0, 3, 10], [20, 0, 30, 10], [20, 0, 30, 3]])
    scores = torch.tensor([0.9, 0.8, 0.7, 0.6, 0.5])
    for threshold in (0.5, 0.3, float(torch.tensor(0.3))):
        assert_nms(dets, scores, threshold)


def test_nms_of_nothing_and_layouts():
    assert_nms(torch.empty(0, 4), torch.empty(0), 0.5)
    dets, scores = boxes(50), torch.rand(50)
    assert_nms(dets.t().contiguous().t(), torch.stack([scores, scores], 1)[:, 0], 0.5)
    assert_nms(torch.rand(50, 8)[:, ::2], scores, 0.5)


def test_nms_refuses():
    dets, scores = boxes(3), torch.rand(3)
    assert_same_error(lambda d, s: raw.nms(d, s, 0.5), dets, scores.double())
    assert_same_error(lambda d, s: raw.nms(d, s, 0.5), dets, scores[:2])
    assert_same_error(lambda d, s: raw.nms(d, s, 0.5), dets[:, :3], scores)
    assert_same_error(lambda d, s: raw.nms(d, s, 0.5), dets[0], scores)
    assert_same_error(lambda d, s: raw.nms(d, s, 0.5), dets, scores[:, None])
    assert_same_error(lambda d, s: raw.nms(d, s, 0.5), dets.int(), scores.int())


def test_batched_nms():
    dets, scores, labels = boxes(300), torch.rand(300), torch.randint(0, 5, (300,))
    assert_matches_cpu(lambda d, s, i: ops.batched_nms(d, s, i, 0.5), dets, scores, labels, widen=False)


# ---- regions


def pooling(name, bins, scale, samples=-1, aligned=False):
    """One of the four operators; its further results are compared too."""
    if name == "roi_align":
        return lambda x, r: raw.roi_align(x, r, scale, *bins, samples, aligned)
    if name == "ps_roi_align":
        return lambda x, r: raw.ps_roi_align(x, r, scale, *bins, samples)
    return lambda x, r: getattr(raw, name)(x, r, scale, *bins)


NAMES = ["roi_align", "ps_roi_align", "roi_pool", "ps_roi_pool"]


def images(name, batch, channels, height, width, bins=(1, 1), dtype=torch.float32):
    if name.startswith("ps"):
        channels *= bins[0] * bins[1]
    return torch.randn(batch, channels, height, width).to(dtype).requires_grad_()


@pytest.mark.smoke
@pytest.mark.parametrize("name", NAMES)
def test_regions(name):
    for bins, scale, samples in itertools.product([(1, 1), (3, 2), (7, 7)], (1.0, 0.25), (-1, 1, 2)):
        if "align" not in name and samples > 0:
            continue
        x, r = images(name, 2, 3, 19, 23, bins), regions(9, 2, 23 / scale)
        for aligned in (False, True) if name == "roi_align" else (False,):
            assert_matches_cpu(pooling(name, bins, scale, samples, aligned), x, r, terms=20, widen=False)


@pytest.mark.parametrize("name", NAMES)
@dtypes(FLOATS)
def test_region_dtypes(name, dtype):
    """Coordinates are multiples of 1/8, which every dtype represents."""
    bins = (2, 4)
    r = (regions(6, 2, 12.0) * 8).round() / 8
    r[:, 0] = torch.randint(0, 2, (6,)).float()
    x = images(name, 2, 2, 13, 11, bins, dtype)
    expected = pooling(name, bins, 1.0, 2)(x.detach().double().requires_grad_(), r.double())
    ours = x.detach().to("dml").requires_grad_()
    actual = pooling(name, bins, 1.0, 2)(ours, r.to("dml", dtype))
    wide = x.detach().double().requires_grad_()
    expected = pooling(name, bins, 1.0, 2)(wide, r.double())
    first = lambda result: result[0] if isinstance(result, tuple) else result  # noqa: E731
    assert first(actual).dtype == dtype
    assert_same(first(actual), first(expected).to(dtype), exact=first(expected), terms=10)
    first(expected).sum().backward()
    first(actual).sum().backward()
    assert_same(ours.grad, wide.grad.to(dtype), exact=wide.grad, terms=10)
    if isinstance(actual, tuple):
        assert actual[1].cpu().equal(expected[1])


@pytest.mark.parametrize("name", NAMES)
def test_odd_regions(name):
    """Outside, partly outside, empty, inverted, at edges, far larger than the image, tiny."""
    r = torch.tensor(
        [
            [0, -50, -50, -40, -40],
            [0, 50, 50, 60, 60],
            [0, -5, -5, 4, 4],
            [0, 3, 3, 3, 3],
            [1, 8, 9, 2, 1],
            [1, 0, 0, 11, 9],
            [1, -1, -1, 12, 10],
            [1, 10.5, 8.5, 11.5, 9.5],
            [0, -300, -200, 400, 500],
            [0, 4.2, 4.2, 4.3, 4.3],
        ]
    )
    for bins, samples in itertools.product([(1, 1), (2, 3)], (-1, 2)):
        x = images(name, 2, 2, 9, 11, bins)
        for aligned in (False, True):
            # The CPU fails for inverted regions if the number of samples is not given.
            some = r if samples > 0 or not aligned else r[r[:, 3] >= r[:, 1]]
            assert_matches_cpu(pooling(name, bins, 1.0, samples, aligned), x, some, terms=20, widen=False)


@pytest.mark.parametrize("name", NAMES)
def test_no_regions_and_layouts(name):
    x, bins = images(name, 2, 3, 8, 8, (2, 2)), (2, 2)
    run = pooling(name, bins, 0.5)
    assert_matches_cpu(run, x, torch.empty(0, 5), widen=False)
    assert_matches_cpu(run, x[:0].detach().requires_grad_(), torch.empty(0, 5), widen=False)
    assert_matches_cpu(run, x[:, :0].detach().requires_grad_(), regions(3, 2), widen=False)
    assert_matches_cpu(run, x.detach().contiguous(memory_format=torch.channels_last).requires_grad_(), regions(5, 2))
    assert_matches_cpu(run, x, regions(10, 2)[::2].t().contiguous().t(), widen=False)


@pytest.mark.parametrize("name", NAMES)
def test_many_regions(name):
    """More regions than a workgroup lists at a time, on images larger than a tile of pixels."""
    x = images(name, 2, 9, 40, 50, (2, 2))
    assert_matches_cpu(pooling(name, (2, 2), 1.0), x, regions(700, 2, 45.0), terms=500, widen=False)


def test_one_pixel():
    for name, aligned in itertools.product(NAMES, (False, True)):
        x = images(name, 1, 2, 1, 1, (2, 2))
        assert_matches_cpu(pooling(name, (2, 2), 1.0, 2, aligned), x, regions(4, 1, 2.0), widen=False)


def test_images_by_list():
    x = torch.randn(2, 3, 16, 16, requires_grad=True)
    lists = [boxes(3, 10.0, 5.0), boxes(2, 10.0, 5.0)]
    assert_matches_cpu(lambda x, *b: ops.roi_align(x, list(b), 4, sampling_ratio=2), x, *lists)
    assert_matches_cpu(lambda x, *b: ops.roi_pool(x, list(b), (3, 2)), x, *lists)


@pytest.mark.parametrize("name", NAMES)
def test_gradients_are_the_same_each_time(name):
    x, r = images(name, 1, 4, 20, 20, (3, 3)).detach().to("dml"), regions(300, 1, 20.0).to("dml")
    found = []
    for _ in range(3):
        leaf = x.clone().requires_grad_()
        result = pooling(name, (3, 3), 1.0, 2)(leaf, r)
        (result[0] if isinstance(result, tuple) else result).square().sum().backward()
        found.append(leaf.grad.cpu())
    assert found[0].equal(found[1]) and found[0].equal(found[2])


@pytest.mark.parametrize("name", NAMES)
def test_a_region_of_no_image(name):
    x = images(name, 2, 1, 5, 5).detach().to("dml")
    for number in (-1.0, 2.0):
        with pytest.raises(IndexError):
            pooling(name, (1, 1), 1.0)(x, torch.tensor([[number, 0, 0, 3, 3]], device="dml"))
            torch.dml.synchronize()


@pytest.mark.parametrize("name", NAMES)
def test_regions_refuse(name):
    run, x, r = pooling(name, (2, 2), 1.0), torch.randn(1, 4, 5, 5), regions(3, 1)
    assert_same_error(run, x, r.double(), words=False)
    with pytest.raises(RuntimeError):
        run(x.to("dml"), r[:, :4].to("dml"))
    with pytest.raises(RuntimeError):
        run(x[0].to("dml"), r.to("dml"))
    if name.startswith("ps"):
        assert_same_error(run, x[:, :3], r)


# ---- deformable convolution


def deformed(batch=2, channels=4, results=6, size=(7, 9), kernel=(3, 2), masked=True, dtype=torch.float32, **options):
    """Operands of `ops.deform_conv2d`, and a function of them."""
    groups, offset_groups = options.pop("groups", 1), options.pop("offset_groups", 1)
    stride, padding, dilation = (
        options.get(name, default) for name, default in (("stride", 1), ("padding", 0), ("dilation", 1))
    )
    x = torch.randn(batch, channels, *size)
    weight = torch.randn(results, channels // groups, *kernel)
    out = [(n + 2 * padding - dilation * (k - 1) - 1) // stride + 1 for n, k in zip(size, kernel, strict=True)]
    offset = torch.randn(batch, 2 * offset_groups * kernel[0] * kernel[1], *out) * 2
    mask = torch.rand(batch, offset_groups * kernel[0] * kernel[1], *out)
    tensors = [x, offset, weight, torch.randn(results)] + [mask] * masked
    leaves = [t.to(dtype).requires_grad_() for t in tensors]

    def run(x, offset, weight, bias, mask=None):
        return ops.deform_conv2d(x, offset, weight, bias, mask=mask, **options)

    return run, leaves


@pytest.mark.smoke
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"stride": 2, "padding": 1},
        {"padding": 2, "dilation": 2},
        {"groups": 2},
        {"offset_groups": 2},
        {"groups": 2, "offset_groups": 4, "padding": 1},
        {"batch": 1, "kernel": (1, 1)},
        {"batch": 3, "channels": 12, "results": 1, "kernel": (2, 3)},
    ],
)
def test_deform_conv2d(options, masked):
    run, operands = deformed(masked=masked, **options)
    assert_matches_cpu(run, *operands, terms=100)


@dtypes(FLOATS)
def test_deform_conv2d_dtypes(dtype):
    """Offsets are multiples of 1/4, which every dtype represents together with pixel
    coordinates.
    """
    run, operands = deformed(dtype=dtype, padding=1)
    operands[1] = ((operands[1].detach() * 4).round() / 4).requires_grad_()
    wide = [t.detach().double().requires_grad_() for t in operands]
    ours = [t.detach().to("dml").requires_grad_() for t in operands]
    expected, actual = run(*wide), run(*ours)
    assert_same(actual, expected.to(dtype), exact=expected, terms=100)
    expected.sum().backward()
    actual.sum().backward()
    for one, other in zip(ours, wide, strict=True):
        assert_same(one.grad, other.grad.to(dtype), exact=other.grad, terms=400)


def test_deform_conv2d_by_finite_differences():
    run, operands = deformed(batch=1, channels=2, results=2, size=(4, 4), kernel=(2, 2), dtype=torch.float64)
    assert torch.autograd.gradcheck(run, [t.detach().to("dml").requires_grad_() for t in operands])


def test_deform_conv2d_far_offsets():
    run, operands = deformed()
    offset = operands[1].detach()
    offset[:, ::3] = 1e6
    offset[:, 1::3] = -1e6
    offset[0] = torch.tensor([-1.0, 1.0, 2.0, -3.0]).repeat(offset[0].numel() // 4).reshape(offset[0].shape)
    operands[1] = offset.requires_grad_()
    assert_matches_cpu(run, *operands, terms=100)


def test_deform_conv2d_layouts_and_nothing():
    run, operands = deformed()
    last = [
        t.detach().contiguous(memory_format=torch.channels_last).requires_grad_() for t in (operands[0], operands[2])
    ]
    assert_matches_cpu(run, last[0], operands[1], last[1], *operands[3:], terms=100)
    run, operands = deformed(batch=0)
    ours = [t.detach().to("dml").requires_grad_() for t in operands]
    result = run(*ours)
    assert result.shape == (0, 6, 5, 8)
    result.sum().backward()
    assert ours[2].grad.abs().sum().item() == 0


def test_deform_conv2d_in_parts():
    """More images than have their im2col matrices in memory at a time: each gives the same result
    as alone.
    """
    run, operands = deformed(batch=2, channels=128, results=2, size=(48, 48), kernel=(3, 3), dtype=torch.float64)
    ours = [t.detach().to("dml").requires_grad_() for t in operands]
    result = run(*ours)
    result.sum().backward()
    for i in range(2):
        own = [slice(i, i + 1) if k in (0, 1, 4) else slice(None) for k in range(len(operands))]
        alone = [t.detach()[part].to("dml").requires_grad_() for t, part in zip(operands, own, strict=True)]
        part = run(*alone)
        part.sum().backward()
        assert_same(result[i : i + 1], part.cpu(), terms=1000)
        for k in (0, 1, 4):
            assert_same(ours[k].grad[own[k]], alone[k].grad.cpu(), terms=1000)
        ours[2].grad -= alone[2].grad
    assert ours[2].grad.abs().max().item() < 1e-8


def test_deform_conv2d_refuses():
    run, (x, offset, weight, bias, mask) = deformed()
    with torch.no_grad():
        assert_same_error(run, x, offset[:, :-2], weight, bias, mask, words=False)
        assert_same_error(run, x, offset[:1], weight, bias, mask, words=False)
        assert_same_error(run, x, offset, weight, bias, mask[:, :, 1:], words=False)
        assert_same_error(run, x, offset, weight[:, 1:], bias, mask, words=False)
        assert_same_error(run, x.double(), offset, weight, bias, mask, words=False)
        assert_same_error(run, x[:, :, :2, :1], offset, weight, bias, mask, words=False)


# ---- the library


def detector():
    """A Faster R-CNN with a few channels. It samples all anchors and proposals, so that devices
    agree.
    """
    from torchvision.models.detection import FasterRCNN
    from torchvision.models.detection.rpn import AnchorGenerator

    backbone = nn.Sequential(
        nn.Conv2d(3, 8, 3, 4, 1), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 8, 3, 2, 1), nn.BatchNorm2d(8), nn.ReLU()
    )
    backbone.out_channels = 8
    return FasterRCNN(
        backbone,
        min_size=64,
        max_size=64,
        rpn_anchor_generator=AnchorGenerator(((8, 16, 32),), ((0.5, 1.0, 2.0),)),
        box_roi_pool=ops.MultiScaleRoIAlign(["0"], 3, 2),
        box_head=nn.Sequential(nn.Flatten(), nn.Linear(72, 16), nn.ReLU()),
        box_predictor=torchvision.models.detection.faster_rcnn.FastRCNNPredictor(16, 3),
        rpn_batch_size_per_image=4000,
        box_batch_size_per_image=8000,
        box_score_thresh=0.0,
    )


def step(model, device, dtype=None):
    """The losses of a training step, and the gradients."""
    torch.manual_seed(1)
    images = [torch.rand(3, 64, 64), torch.rand(3, 48, 64)]
    targets = [
        {"boxes": torch.tensor([[4.0, 4, 30, 40], [20, 8, 60, 44]]), "labels": torch.tensor([1, 2])},
        {"boxes": torch.tensor([[10.0, 10, 40, 40]]), "labels": torch.tensor([1])},
    ]
    model = copy.deepcopy(model).to(device).train()
    targets = [{name: value.to(device) for name, value in target.items()} for target in targets]
    with torch.autocast("dml", dtype, enabled=dtype is not None):
        losses = model([image.to(device) for image in images], targets)
    sum(losses.values()).backward()
    return {name: loss.item() for name, loss in losses.items()}, [p.grad.cpu() for p in model.parameters()]


def test_detector():
    model = detector()
    (losses, gradients), (expected, theirs) = step(model, "dml"), step(model, "cpu")
    assert losses == pytest.approx(expected, rel=1e-4)
    for one, other in zip(gradients, theirs, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-4)
    model.eval()
    images = [torch.rand(3, 64, 64), torch.rand(3, 48, 64)]
    with torch.no_grad():
        expected = model(images)
        found = model.to("dml")([image.to("dml") for image in images])
    for one, other in zip(found, expected, strict=True):
        assert one["labels"].tolist() == other["labels"].tolist()
        torch.testing.assert_close(one["boxes"].cpu(), other["boxes"], rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_detector_under_autocast(dtype):
    model = detector()
    (losses, gradients), (expected, _) = step(model, "dml", dtype), step(model, "dml")
    assert losses == pytest.approx(expected, rel=0.1)
    assert all(gradient.isfinite().all() for gradient in gradients)
    with torch.no_grad(), torch.autocast("dml", dtype):
        found = model.to("dml").eval()([torch.rand(3, 64, 64, device="dml")])
    assert len(found[0]["boxes"]) > 0


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_autocast_runs_in_float32(dtype):
    dets, scores = boxes(100).to("dml"), torch.rand(100, device="dml")
    x, r = torch.randn(2, 4, 9, 9).to("dml"), regions(8, 2, 9.0).to("dml")
    run, operands = deformed()
    operands = [t.detach().to("dml") for t in operands]
    plain = [raw.nms(dets.to(dtype).float(), scores, 0.5), run(operands[0].to(dtype).float(), *operands[1:])]
    plain += [pooling(name, (2, 2), 1.0)(x.to(dtype).float(), r) for name in NAMES]
    with torch.autocast("dml", dtype):
        cast = [raw.nms(dets.to(dtype), scores, 0.5), run(operands[0].to(dtype), *operands[1:])]
        cast += [pooling(name, (2, 2), 1.0)(x.to(dtype), r) for name in NAMES]
    for one, other in zip(tensors(plain), tensors(cast), strict=True):
        assert other.dtype == (dtype if one.is_floating_point() else one.dtype)
        assert other.cpu().equal(one.to(other.dtype).cpu())


def test_autocast_leaves_float64():
    x, r = torch.randn(2, 4, 9, 9).double().to("dml"), regions(8, 2, 9.0).double().to("dml")
    with torch.autocast("dml"):
        assert raw.roi_align(x, r, 1.0, 2, 2, 2, True).dtype == torch.float64


IN_CUDAS_PLACE = """
import torch, torchvision
device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(0)
x = torch.randn(2, 4, 12, 12).to(device).requires_grad_()
boxes = torch.tensor([[0, 1, 2, 8, 9], [1, 0, 0, 11, 11], [1, 5, 5, 6, 9.0]]).to(device)
numbers = torchvision.ops.nms(boxes[:, 1:], boxes[:, 4], 0.3).tolist()
for run in (torchvision.ops.roi_pool, torchvision.ops.ps_roi_pool):
    run(x, boxes, 2).square().sum().backward()
for run in (torchvision.ops.roi_align, torchvision.ops.ps_roi_align):
    run(x, boxes, 2, sampling_ratio=2).square().sum().backward()
weight, offset = torch.randn(3, 4, 3, 3).to(device), torch.randn(2, 18, 10, 10).to(device)
torchvision.ops.deform_conv2d(x, offset, weight).square().sum().backward()
with torch.autocast(device, enabled=device == "cuda"):
    half = x.half() if device == "cuda" else x
    assert torchvision.ops.roi_align(half, boxes, 2).dtype == half.dtype
    torchvision.ops.nms(boxes[:, 1:].to(half.dtype), boxes[:, 4], 0.3)
if device == "cuda":
    import torch_dml.fallback
    assert torch_dml.fallback.fallbacks() == {}, torch_dml.fallback.fallbacks()
print(device, *numbers, *x.grad.flatten().tolist())
"""


def test_in_cudas_place(tmp_path):
    """In a place where torchvision's own CUDA kernels are, if its wheel has them."""
    script = tmp_path / "program.py"
    script.write_text(IN_CUDAS_PLACE)
    environment = {"TORCH_DML_AS_CUDA": "", "CUDA_VISIBLE_DEVICES": ""}
    found = run_python("-m", "torch_dml", "run", str(script), **environment)
    assert found.returncode == 0, found.stderr
    assert "Overriding" not in found.stderr
    expected = run_python(str(script), TORCH_DEVICE_BACKEND_AUTOLOAD="0", **environment)
    (device, *ours), (other, *theirs) = found.stdout.split(), expected.stdout.split()
    assert (device, other) == ("cuda", "cpu")
    torch.testing.assert_close(
        torch.tensor(list(map(float, ours))), torch.tensor(list(map(float, theirs))), rtol=1e-4, atol=1e-4
    )


@pytest.mark.parametrize("first", ["torch_dml", "torchvision"])
def test_order_of_imports(first):
    """Operators are registered whichever is imported first; without the library nothing fails."""
    code = f"""
import {first}, torch, torch_dml, torchvision
x = torch.zeros(3, 4, device='dml')
torchvision.ops.nms(x, x[:, 0], 0.5)
assert torch.dml.fallback_count() == 0, torch.dml.fallbacks()
"""
    done = run_python("-c", code)
    assert done.returncode == 0, done.stderr


def test_without_the_library():
    code = """
import sys, torch, torch_dml
from torch_dml import operators
assert torch.ones(2, device='dml').sum().item() == 2
assert 'torchvision' not in sys.modules
assert not any(name.startswith('torchvision') for name in operators.report().unknown)
"""
    done = run_python("-c", code)
    assert done.returncode == 0, done.stderr
