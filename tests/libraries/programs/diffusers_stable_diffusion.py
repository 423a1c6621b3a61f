"""A tiny Stable Diffusion: text encoder, UNet and VAE through the pipeline, with guidance, float16
where there is CUDA.
modes: cpu, cuda
"""

import json

import torch
from diffusers import AutoencoderKL, DDIMScheduler, StableDiffusionPipeline, UNet2DConditionModel
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import CLIPTextConfig, CLIPTextModel, PreTrainedTokenizerFast

entries = ["<start>", "<end>", "<unk>", "a", "picture", "of", "red", "cat"]
vocabulary = {word: index for index, word in enumerate(entries)}
words = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
words.pre_tokenizer = pre_tokenizers.Whitespace()
tokenizer = PreTrainedTokenizerFast(
    tokenizer_object=words, bos_token="<start>", eos_token="<end>", pad_token="<end>", model_max_length=8
)
torch.manual_seed(0)
unet = UNet2DConditionModel(
    sample_size=8,
    block_out_channels=(16, 32),
    layers_per_block=1,
    norm_num_groups=8,
    attention_head_dim=8,
    cross_attention_dim=32,
    down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"),
    up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"),
)
vae = AutoencoderKL(
    block_out_channels=(16, 16),
    norm_num_groups=8,
    latent_channels=4,
    down_block_types=("DownEncoderBlock2D",) * 2,
    up_block_types=("UpDecoderBlock2D",) * 2,
)
text = CLIPTextConfig(
    vocab_size=len(vocabulary),
    hidden_size=32,
    intermediate_size=64,
    num_hidden_layers=2,
    num_attention_heads=4,
    max_position_embeddings=8,
    bos_token_id=0,
    eos_token_id=1,
    pad_token_id=1,
)
pipeline = StableDiffusionPipeline(
    vae=vae,
    text_encoder=CLIPTextModel(text),
    tokenizer=tokenizer,
    unet=unet,
    scheduler=DDIMScheduler(beta_start=0.00085, beta_end=0.012, beta_schedule="scaled_linear", clip_sample=False),
    safety_checker=None,
    feature_extractor=None,
    requires_safety_checker=False,
)
cuda = torch.cuda.is_available()
pipeline = pipeline.to("cuda", torch.float16) if cuda else pipeline
pipeline.enable_attention_slicing()
pipeline.set_progress_bar_config(disable=True)
generator = torch.Generator("cpu").manual_seed(0)
latents = torch.randn(1, 4, 8, 8, generator=generator).to(pipeline.device, pipeline.unet.dtype)
found = pipeline("a picture of a red cat", num_inference_steps=3, latents=latents, output_type="np").images
print(json.dumps({"device": str(pipeline.device), "numbers": found[0, ::4, ::4].ravel().tolist(), "tolerance": 2e-2}))
