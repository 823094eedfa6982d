// The theme: system fonts, one accent colour, small radii, dense by default.
import { createTheme, type MantineColorsTuple } from "@mantine/core";

/** Hay green, from the mark. Shade 7 on white and shade 4 on near-black both pass WCAG AA for text. */
const hay: MantineColorsTuple = [
  "#ecf8f5",
  "#d9eeea",
  "#b1dcd5",
  "#86cabf",
  "#62bbac",
  "#4bb1a0",
  "#3dab9a",
  "#0f766a",
  "#0f6b62",
  "#055a52",
];

/** Cool greys with a trace of the accent, for a dark scheme that is not pure black. */
const dark: MantineColorsTuple = [
  "#d5dbdc",
  "#b3bcbe",
  "#8d989b",
  "#6b777a",
  "#3c474a",
  "#2b3538",
  "#20292b",
  "#171e20",
  "#11171a",
  "#0c1113",
];

export const theme = createTheme({
  primaryColor: "hay",
  primaryShade: { light: 7, dark: 7 },
  colors: { hay, dark },
  fontFamily:
    'ui-sans-serif, system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", "Noto Sans", "Liberation Sans", ' +
    "Arial, sans-serif",
  fontFamilyMonospace:
    'ui-monospace, "SF Mono", "Cascadia Mono", Menlo, Consolas, "DejaVu Sans Mono", "Liberation Mono", monospace',
  fontSizes: { xs: "12px", sm: "13px", md: "14px", lg: "16px", xl: "19px" },
  defaultRadius: "sm",
  radius: { xs: "3px", sm: "5px", md: "8px", lg: "10px", xl: "14px" },
  headings: {
    fontWeight: "600",
    sizes: {
      h1: { fontSize: "20px", lineHeight: "1.3" },
      h2: { fontSize: "15px", lineHeight: "1.4" },
      h3: { fontSize: "13px", lineHeight: "1.4" },
    },
  },
  cursorType: "pointer",
  respectReducedMotion: true,
  components: {
    Button: { defaultProps: { size: "xs" }, styles: { root: { fontWeight: 550 } } },
    ActionIcon: { defaultProps: { variant: "subtle", color: "gray" } },
    TextInput: { defaultProps: { size: "sm" } },
    Tooltip: { defaultProps: { openDelay: 250, withArrow: true, events: { hover: true, focus: true, touch: true } } },
    Badge: { defaultProps: { variant: "light", radius: "sm" } },
    Modal: {
      defaultProps: {
        centered: true,
        closeButtonProps: { "aria-label": "Close" },
        overlayProps: { backgroundOpacity: 0.45 },
      },
    },
  },
});

/** Colours for canvases, which read no stylesheet: the lines of a chart, its text and its grid. */
export const CHART_COLOURS = [
  "#1f8a7c",
  "#c9772b",
  "#4a78c8",
  "#b0519b",
  "#7a8f1e",
  "#c2473f",
  "#5d6b9c",
  "#8a6a3a",
] as const;
export const CHART_INK = {
  dark: { ink: "#96a3a6", line: "#222c2f" },
  light: { ink: "#5c686b", line: "#e6ebeb" },
} as const;
