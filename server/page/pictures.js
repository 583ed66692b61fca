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

// What `use` returns of an img element with the file's picture.
async function withPicture(file, use) {
  const url = URL.createObjectURL(file);
  try {
    return await use(make("img", { src: url }));
  } finally {
    URL.revokeObjectURL(url);
  }
}

// How many pixels it has; 0 if the browser cannot read it.
const pixelsOf = (file) => withPicture(file, (picture) => new Promise((resolve) => {
  picture.onload = () => resolve(picture.naturalWidth * picture.naturalHeight);
  picture.onerror = () => resolve(0);
}));

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

// As large as `most` bytes allow; of an animation the first frame. Errors: the browser cannot draw it.
const asPng = (file, most) => withPicture(file, async (picture) => {
  await picture.decode();
  for (let longestSide = LONGEST_SIDE; ; longestSide /= 2) {
    const bytes = await drawnAsPng(picture, longestSide);
    if (bytes.length <= most || longestSide === 1) return bytes;
  }
});

// The bytes to send for a file, and whether the page has drawn them. The server takes at most so many bytes and pixels.
// A file that the browser cannot draw goes as it is: the server says what is wrong with it.
export async function pictureOf(file, { imageBytes, imagePixels }) {
  const bytes = await bytesOfFile(file);
  const most = Number(imageBytes);
  if (isDecoded(bytes) && bytes.length <= most && (await pixelsOf(file)) <= Number(imagePixels)) return { bytes, drawn: false };
  try {
    return { bytes: await asPng(file, most), drawn: true };
  } catch {
    return { bytes, drawn: false };
  }
}
