// The icons: 16 px strokes in the text's colour, hidden from screen readers.
import type { ReactNode } from "react";

function icon(children: ReactNode) {
  // biome-ignore lint/correctness/noComponentHookFactories: each picture is made once, as this module is read
  return function Icon({ size = 16 }: { size?: number }) {
    return (
      <svg
        width={size}
        height={size}
        viewBox="0 0 16 16"
        fill="none"
        stroke="currentColor"
        strokeWidth="1.4"
        strokeLinecap="round"
        strokeLinejoin="round"
        aria-hidden="true"
        focusable="false"
      >
        {children}
      </svg>
    );
  };
}

export const FleetIcon = icon(<path d="M2 4h12M2 8h12M2 12h12M5 2.5v3M10 6.5v3M7 10.5v3" />);
export const QueueIcon = icon(<path d="M2 3.5h12M2 8h8.5M2 12.5h5M12 10.5l2 2-2 2" />);
export const ClusterIcon = icon(<path d="M8 1.8 13.5 5v6L8 14.2 2.5 11V5zM2.5 5 8 8.2 13.5 5M8 8.2v6" />);
export const VolumeIcon = icon(
  <>
    <path d="M8 2c3 0 5.2.9 5.2 2S11 6 8 6 2.8 5.1 2.8 4 5 2 8 2z" />
    <path d="M2.8 4v8c0 1.1 2.2 2 5.2 2s5.2-.9 5.2-2V4M2.8 8c0 1.1 2.2 2 5.2 2s5.2-.9 5.2-2" />
  </>,
);
export const SecretIcon = icon(<path d="M3.5 7h9v7h-9zM5.2 7V5a2.8 2.8 0 0 1 5.6 0v2M8 9.8v1.6" />);
export const ResourceIcon = icon(
  <path d="M4 4h8v8H4zM6.5 6.5h3v3h-3zM6.5 1.8V4M9.5 1.8V4M6.5 12v2.2M9.5 12v2.2M1.8 8H4M12 8h2.2" />,
);
export const CloudIcon = icon(<path d="M4.5 12.5a3 3 0 0 1-.3-6 4 4 0 0 1 7.6-.4 3.2 3.2 0 0 1-.3 6.4z" />);
export const ReceiptIcon = icon(<path d="M3.5 1.8h9v12.4l-2.2-1.4L8 14.2l-2.3-1.4-2.2 1.4zM6 5.5h4M6 8.5h4" />);
export const OfferIcon = icon(<path d="M8.5 2H14v5.5L7.5 14 2 8.5zM11.2 4.8h.01" />);
export const RouteIcon = icon(<path d="M3.5 14V9.5a3 3 0 0 1 3-3h6M9.5 3.5l3 3-3 3M3.5 2v2" />);
export const PriceIcon = icon(<path d="M2.5 14V9h3v5zM6.5 14V5h3v9zM10.5 14V2h3v12z" />);
export const ReportIcon = icon(<path d="M3 2h7l3 3v9H3zM5.5 11.5V9M8 11.5V7M10.5 11.5V8" />);
export const EventIcon = icon(<path d="M1.5 8h3l2-5 3 10 2-5h3" />);
export const BellIcon = icon(<path d="M3 11.5h10L11.8 9.8V7a3.8 3.8 0 0 0-7.6 0v2.8zM6.6 13.6h2.8M8 1.8v1.4" />);
export const TokenIcon = icon(<path d="M7.3 8.7a3 3 0 1 1-4.2 4.2 3 3 0 0 1 4.2-4.2zM7.2 8.8 13.5 2.5M11 5l2 2" />);
export const JoinIcon = icon(<path d="M2 3h12v6.5H2zM5.5 13h5M8 9.5V13M8 4.8v3M6.5 6.3h3" />);
export const RegionIcon = icon(
  <>
    <path d="M8 2a6 6 0 1 1 0 12A6 6 0 0 1 8 2zM2 8h12" />
    <path d="M8 2c2 1.8 2.6 3.8 2.6 6S10 12.2 8 14c-2-1.8-2.6-3.8-2.6-6S6 3.8 8 2z" />
  </>,
);
export const HealthIcon = icon(<path d="M8 13.5S2 10.2 2 6a3 3 0 0 1 6-1 3 3 0 0 1 6 1c0 4.2-6 7.5-6 7.5z" />);
export const HomeIcon = icon(<path d="M2 7.5 8 2.5l6 5M3.5 6.5V13.5h9V6.5M6.5 13.5v-4h3v4" />);
export const MoreIcon = icon(<path d="M2.5 4.5h11M2.5 8h11M2.5 11.5h11" />);
export const PlusIcon = icon(<path d="M8 3v10M3 8h10" />);
export const CopyIcon = icon(<path d="M5.5 5.5h8v8h-8zM10.5 5.5v-3h-8v8h3" />);
export const CheckIcon = icon(<path d="m3 8.5 3.2 3.2L13 4.8" />);
export const SunIcon = icon(
  <>
    <path d="M8 5.2a2.8 2.8 0 1 1 0 5.6 2.8 2.8 0 0 1 0-5.6z" />
    <path d="M8 1.5v1M8 13.5v1M1.5 8h1M13.5 8h1M3.4 3.4l.7.7M11.9 11.9l.7.7M12.6 3.4l-.7.7M4.1 11.9l-.7.7" />
  </>,
);
export const MoonIcon = icon(<path d="M13.5 9.5A6 6 0 0 1 6.5 2.5a6 6 0 1 0 7 7z" />);
export const AutoIcon = icon(
  <>
    <path d="M8 2a6 6 0 1 1 0 12A6 6 0 0 1 8 2z" />
    <path d="M8 2v12a6 6 0 0 0 0-12z" fill="currentColor" />
  </>,
);
export const SearchIcon = icon(<path d="M7 2.5a4.5 4.5 0 1 1 0 9 4.5 4.5 0 0 1 0-9zM10.3 10.3l3.2 3.2" />);
export const ChevronIcon = icon(<path d="m4.5 6.5 3.5 3.5 3.5-3.5" />);
export const DownloadIcon = icon(<path d="M8 2v8M4.8 7 8 10.2 11.2 7M2.5 13.5h11" />);
export const PrintIcon = icon(<path d="M4.5 6V2h7v4M4.5 11.5h-2V6h11v5.5h-2M4.5 9.5h7V14h-7z" />);
export const UserIcon = icon(
  <path d="M8 8a2.8 2.8 0 1 0 0-5.6A2.8 2.8 0 0 0 8 8zM2.8 13.8c.5-2.8 2.6-4 5.2-4s4.7 1.2 5.2 4" />,
);
export const PeopleIcon = icon(
  <>
    <path d="M6 7.6a2.3 2.3 0 1 0 0-4.6 2.3 2.3 0 0 0 0 4.6zM1.8 13c.3-2.4 2-3.6 4.2-3.6s3.9 1.2 4.2 3.6" />
    <path d="M10.6 3.3a2.2 2.2 0 0 1 0 4.1M12 9.9c1.3.5 2 1.6 2.2 3.1" />
  </>,
);
export const UsersIcon = icon(
  <path d="M8 3.2a1.8 1.8 0 1 1 0 3.6 1.8 1.8 0 0 1 0-3.6zM2.5 14h11M3.5 14V9.8h9V14M8 9.8V14M8 6.8v3" />,
);
export const CommandIcon = icon(<path d="m3 4.5 3.5 3.5L3 11.5M8 12h5.5" />);
export const AuditIcon = icon(
  <path d="M8 1.8 13.2 4v3.8c0 3.2-2.2 5.4-5.2 6.4-3-1-5.2-3.2-5.2-6.4V4zM5.6 8l1.7 1.7 3.2-3.4" />,
);
export const SettingsIcon = icon(<path d="M2 4.5h6M11.5 4.5H14M2 11.5h2.5M8 11.5h6M9.7 2.8v3.4M6.2 9.8v3.4" />);
export const KeyboardIcon = icon(
  <path d="M1.8 4h12.4v8H1.8zM4.2 6.6h.01M6.7 6.6h.01M9.3 6.6h.01M11.8 6.6h.01M5 9.5h6" />,
);
