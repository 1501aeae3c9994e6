"""Images: decoded, encoded, resized, and changed by chance; the names of `tf.io` and `tf.image` on numpy.

Images are arrays of shape `(height, width, channels)`. The random ones take the generator that `random_map` gives:

    ds.random_map(lambda sample, rng: image.random_flip_left_right(image.decode_jpeg(sample["jpg"]), rng))

Decoding and encoding need Pillow, which comes with the extra `image`, together with simplejpeg, which is quicker.
"""

from __future__ import annotations

from aiodata.formats.image import decode_image, decode_jpeg, decode_png
from aiodata.formats.image_crop import central_crop, random_crop, random_flip_left_right, random_flip_up_down
from aiodata.formats.image_encoding import encode_jpeg, encode_png
from aiodata.formats.image_resize import resize

__all__ = [
    "central_crop",
    "decode_image",
    "decode_jpeg",
    "decode_png",
    "encode_jpeg",
    "encode_png",
    "random_crop",
    "random_flip_left_right",
    "random_flip_up_down",
    "resize",
]
