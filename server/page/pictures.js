// Pictures as the server takes them: what it does not decode, or is too large for it, the browser draws, and the page
// sends that as PNG.

import { make } from "./dom.js";
import { bytesOfFile } from "./source.js";

const LONGEST_SIDE = 2048; // pixels of a picture that the page draws; models read far fewer
const WITHOUT_SIZE = 512; // pixels of the sides of an SVG that names none

const startsWith = (bytes, text, at = 0) => [...text].every((letter, index) => bytes[at + index] === letter.charCodeAt(0));

// Whether the server decodes the file: JPEG, PNG or WebP.
function isDecoded(bytes) {
  return startsWith(bytes, "\xff\xd8\xff") || startsWith(bytes, "\x89PNG") || (startsWith(bytes, "RIFF") && startsWith(bytes, "WEBP", 8));
}

// An img element with the file's picture: of an animation the first frame. Errors: the browser cannot draw it.
async function loaded(file) {
  const url = URL.createObjectURL(file);
  try {
    const picture = make("img", { src: url });
    await picture.decode();
    return picture;
  } finally {
    URL.revokeObjectURL(url);
  }
}

async function drawnAsPng(picture, longestSide) {
  const width = picture.naturalWidth || WITHOUT_SIZE;
  const height = picture.naturalHeight || WITHOUT_SIZE;
  const scale = Math.min(1, longestSide / Math.max(width, height));
  const canvas = make("canvas", {
    width: Math.max(1, Math.round(width * scale)),
    height: Math.max(1, Math.round(height * scale)),
  });
  canvas.getContext("2d").drawImage(picture, 0, 0, canvas.width, canvas.height);
  const blob = await new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
  if (blob === null) throw new Error("The browser cannot write it as PNG.");
  return bytesOfFile(blob);
}

// As large as `most` bytes allow.
async function asPng(file, most) {
  const picture = await loaded(file);
  for (let longestSide = LONGEST_SIDE; ; longestSide /= 2) {
    const bytes = await drawnAsPng(picture, longestSide);
    if (bytes.length <= most || longestSide === 1) return bytes;
  }
}

// The bytes to send for a file, and whether the page has drawn them. The server takes at most `most` bytes. A file that
// the browser cannot draw goes as it is: the server says what is wrong with it.
export async function pictureOf(file, most) {
  const bytes = await bytesOfFile(file);
  if (isDecoded(bytes) && bytes.length <= most) return { bytes, drawn: false };
  try {
    return { bytes: await asPng(file, most), drawn: true };
  } catch {
    return { bytes, drawn: false };
  }
}
